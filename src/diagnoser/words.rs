//! Phrases of findings. They are compiled into this program, so that only visitors of the page download them.

use vramscope_diagnose::words::Phrases;

/// Phrases of findings, by the tag of their language.
const WORDS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// Returns the phrases of a language as a JSON object, with those of the kinds of evidence; in English for an unknown
/// language.
pub fn phrases(language: &str) -> String {
    let (tag, own) = WORDS.iter().find(|(tag, _)| *tag == language).unwrap_or(&WORDS[0]);
    Phrases::read(own).unwrap_or_default().with_kinds(tag).json()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use vramscope_phrases::{LANGUAGES, gaps};

    use super::*;

    fn read(language: &str) -> BTreeMap<String, String> {
        serde_json::from_str(&phrases(language)).expect("an object of texts")
    }

    #[test]
    fn every_language_says_everything_with_the_same_gaps() {
        let english = read("en");
        for language in LANGUAGES
            .iter()
            .filter(|language| !language.is_partial)
            .map(|language| language.tag)
        {
            let other = read(language);
            assert_eq!(english.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
            for (key, text) in &english {
                assert_eq!(gaps(text), gaps(&other[key]), "{key} in {language}");
            }
        }
    }
}
