//! Generates Rust names for English phrases, for programs that print them: the page's sentences have one home.

use std::fmt::Write as _;

use crate::Phrase;
use crate::fill::{gaps as used, pieces};

/// Generates a module for each of some subjects. A phrase without gaps becomes a constant, one with gaps a type that names
/// them and turns into a `String`.
pub fn english(phrases: &[Phrase], subjects: &[&str]) -> String {
    let mut code = String::new();
    for subject in subjects {
        let own = phrases.iter().filter(|phrase| phrase.subject == *subject);
        let items: String = own.map(item).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(code, "pub mod {subject} {{\n{items}}}");
    }
    code
}

fn item(phrase: &Phrase) -> String {
    let (key, gaps, text) = (&phrase.key, &phrase.gaps, &phrase.texts[0]);
    if gaps.is_empty() {
        return format!("pub const {key}: &str = {text:?};\n");
    }
    let fields: String = gaps.iter().map(|gap| format!("pub {gap}: String, ")).collect();
    // English may lack a gap that other languages have, so a field may stay unread. Fields are read as `of.gap`: in a pattern
    // such as `Self { gap }`, the compiler would take `gap` for a constant, if a phrase of the module has that name.
    let values: String = used(text).iter().map(|gap| format!(", {gap} = of.{gap}")).collect();
    let (pieces, last) = pieces(text);
    let format: String = pieces.map(|(text, gap)| format!("{text}{{{gap}}}")).collect();
    let format = format + last;
    let given = if values.is_empty() { "_" } else { "of" };
    format!(
        "pub struct {key} {{ {fields} }}\n\
         impl From<{key}> for String {{\n\
         fn from({given}: {key}) -> Self {{ format!({format:?}{values}) }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_become_constants_and_types() {
        let phrase = |key: &str, gaps: &[&str], text: &str| Phrase {
            subject: "plan".to_owned(),
            key: key.to_owned(),
            gaps: gaps.iter().map(|gap| (*gap).to_owned()).collect(),
            texts: vec![text.to_owned()],
        };
        let all = [
            phrase("fits", &[], "It \"fits\"."),
            phrase("on", &["card"], "on {{ card }}."),
        ];
        let code = english(&all, &["plan"]);
        assert!(code.contains(r#"pub const fits: &str = "It \"fits\".";"#), "{code}");
        assert!(code.contains(r#"format!("on {card}.", card = of.card)"#), "{code}");
    }
}
