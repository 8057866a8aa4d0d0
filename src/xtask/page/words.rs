//! Writes the page's phrases as one content-hashed file per language, and the languages into scripts.

use std::path::PathBuf;

use vramscope_phrases as phrases;

use super::published::Published;
use crate::{Failure, root};

/// Attribute of the page that names the files of phrases.
const WORDS: &str = " data-words";
/// Line of a script that holds the languages.
const LANGUAGES: &str = "const LANGUAGES = [];";

/// Folder of the languages.
pub fn locales() -> PathBuf {
    root().join("src/app/locales")
}

/// Writes the languages and names them in the page.
pub fn write(page: &mut Published) -> Result<(), Failure> {
    let all = phrases::read(&locales()).map_err(Failure::new)?;
    let mut names = String::new();
    for (place, language) in phrases::LANGUAGES.iter().enumerate() {
        let text = phrases::packed(&all, place);
        let file = page.write(&format!("words/{}.txt", language.tag), text.as_bytes())?;
        names += &format!(" data-{}=\"{file}\"", short(language.tag));
    }
    page.expand(WORDS, &names)
}

/// Name of a language in an attribute: `zhcn`.
pub fn short(tag: &str) -> String {
    tag.to_lowercase().replace('-', "")
}

/// A script with the languages in it: the tag of each and the subtags that only it has.
pub fn with_languages(script: &str) -> String {
    let rows = phrases::LANGUAGES.iter().map(|language| {
        let words = [language.tag].into_iter().chain(language.subtags.iter().copied());
        format!("{:?}", words.collect::<Vec<_>>())
    });
    let rows = rows.collect::<Vec<_>>().join(", ");
    script.replace(LANGUAGES, &format!("const LANGUAGES = [{rows}];"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_phrases::{LANGUAGES, Phrase, packed, read};

    #[test]
    fn gaps_are_numbered_in_the_order_of_their_names() {
        let phrase = Phrase {
            subject: "verdict".into(),
            key: "spare".into(),
            gaps: vec!["card".into(), "room".into()],
            texts: ["{{ room }} of {{ card }}.", "{{card}}：{{ room }}", "—"]
                .map(String::from)
                .to_vec(),
        };
        let lines = [0, 1, 2].map(|language| packed(std::slice::from_ref(&phrase), language));
        assert_eq!(lines, ["{1} of {0}.", "{0}：{1}", "—"]);
    }

    #[test]
    fn every_language_has_as_many_lines() {
        let all = read(&locales()).expect("the page's phrases");
        for language in 0..LANGUAGES.len() {
            assert_eq!(packed(&all, language).lines().count(), all.len());
        }
    }

    #[test]
    fn scripts_that_choose_a_language_are_given_all() {
        for name in ["boot.js", "embed.js"] {
            let script = std::fs::read_to_string(super::super::scripts().join(name)).expect("a script");
            assert_eq!(script.matches(super::LANGUAGES).count(), 1, "{name}");
            let whole = with_languages(&script);
            assert!(
                whole.contains(r#"const LANGUAGES = [["en"], ["zh-CN", "hans"], ["zh-TW", "hant""#),
                "{name}"
            );
        }
    }
}
