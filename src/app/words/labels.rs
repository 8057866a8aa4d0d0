//! Settings in the engine's texts, by the names that the page has for them.

use crate::i18n::{Words, t_string};
use crate::state::Key;

/// Puts the page's labels in the place of settings that a text names in backticks, with what they are set to: "set
/// `freeze` to none" is "set “Trained parameters” to “Full fine-tuning”". What is no setting stays as it is.
pub fn with_labels(i18n: Words, text: &str) -> String {
    let quoted = |what: String| t_string!(i18n, refusal.quoted, what);
    replace(text, |name, value| {
        let key = Key::named(name)?;
        let label = super::label(i18n, key);
        // A key without a label has no control either.
        let label = quoted((label != key.name()).then_some(label)?);
        let choice = value.map(|value| (value, super::choice(i18n, key, value)));
        let choice = choice.filter(|(value, words)| value != words);
        Some((label, choice.map(|(_, words)| quoted(words))))
    })
}

/// Words between a setting and its value, in the engine's English and in the ways out of each language.
const BETWEEN: [&str; 4] = [" to ", " is ", " 设为 ", " 設為 "];

/// `named` gives the label of a name in backticks, and of the value behind it, if it has one.
fn replace(text: &str, named: impl Fn(&str, Option<&str>) -> Option<(String, Option<String>)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, behind)) = next_name(rest) {
        out += before;
        let value = BETWEEN.iter().find_map(|between| {
            let value = behind.strip_prefix(between)?;
            let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            let value = &value[..end.unwrap_or(value.len())];
            (!value.is_empty()).then_some((*between, value))
        });
        match named(name, value.map(|(_, value)| value)) {
            Some((label, choice)) => {
                out += &label;
                rest = behind;
                if let (Some((between, value)), Some(choice)) = (value, choice) {
                    out += between;
                    out += &choice;
                    rest = &behind[between.len() + value.len()..];
                }
            }
            None => {
                out += &format!("`{name}`");
                rest = behind;
            }
        }
    }
    out + rest
}

/// The first name in backticks, with the text before and behind it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = text.split_once('`')?;
    let (name, behind) = from.split_once('`')?;
    Some((before, name, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_page(name: &str, value: Option<&str>) -> Option<(String, Option<String>)> {
        let label = match name {
            "freeze" => "“Trained parameters”",
            "seq" => "“Sequence length”",
            _ => return None,
        };
        let choice = value
            .filter(|value| *value == "none")
            .map(|_| "“Full fine-tuning”".to_owned());
        Some((label.to_owned(), choice))
    }

    #[test]
    fn settings_and_choices_have_the_names_of_the_page() {
        for (text, said) in [
            ("set `freeze` to none", "set “Trained parameters” to “Full fine-tuning”"),
            (
                "`freeze` is none, and `seq` is 4; raise `seq` to at least 8",
                "“Trained parameters” is “Full fine-tuning”, and “Sequence length” is 4; raise “Sequence length” to at least 8",
            ),
            (
                "请把 `freeze` 设为 none",
                "请把 “Trained parameters” 设为 “Full fine-tuning”",
            ),
            (
                "run `vramscope max seq`, not `seq`",
                "run `vramscope max seq`, not “Sequence length”",
            ),
            (
                "an open ` stays, and nothing is lost",
                "an open ` stays, and nothing is lost",
            ),
            ("", ""),
        ] {
            assert_eq!(replace(text, of_page), said);
        }
    }
}
