//! Phrases of launches and of comparisons.

use crate::part_words::part_words;
use crate::worker::launched::Said;

part_words! {
    /// Phrases of launches and of comparisons, and the launch reader's reasons; of English itself those that name flags of
    /// the command line.
    LaunchWords of "launch" and "texts"
}

impl LaunchWords {
    /// The launch reader's reason in this language; in English if it has none.
    pub fn reason(&self, english: &str) -> String {
        self.text(english).to_owned()
    }

    /// Text of a remark on a launch.
    pub fn remark(&self, said: &Said) -> String {
        let values: Vec<(&str, String)> = said
            .values
            .iter()
            .map(|(name, value)| (name.as_str(), self.reason(value)))
            .collect();
        let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.say(&format!("n_{}", said.word), &values)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use vramscope_launch::{NoEffect, NotSimulated, Note};
    use vramscope_phrases::gaps;

    use super::*;
    use crate::languages::Locale;

    fn all() -> Vec<&'static LaunchWords> {
        Locale::all().map(LaunchWords::of).collect()
    }

    #[test]
    fn every_language_says_everything_with_the_same_gaps() {
        let all = all();
        for words in &all {
            assert_eq!(
                words.words.keys().collect::<Vec<_>>(),
                all[0].words.keys().collect::<Vec<_>>()
            );
            for (key, text) in &words.words {
                assert_eq!(gaps(text), gaps(&all[0].words[key]), "{key}");
            }
        }
    }

    #[test]
    fn every_remark_has_its_phrase() {
        for note in Note::ALL.iter().filter(|note| **note != Note::OfLine) {
            for words in all() {
                let phrase = &words.words[&format!("n_{}", note.word())];
                for gap in gaps(phrase) {
                    assert!(note.text().contains(&format!("{{{gap}}}")), "{phrase}: {gap}");
                }
            }
        }
    }

    /// Texts in the source of the launch reader, as arguments of these variants.
    #[expect(clippy::disallowed_methods, reason = "tests run where there are files")]
    fn texts_of_values() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../launch");
        let mut found = Vec::new();
        for file in ["draft.rs", "values.rs"] {
            let text = std::fs::read_to_string(folder.join(file)).expect("a source of the repository");
            for variant in ["Wrong(", "NotSimulated("] {
                let after = text.split(variant).skip(1).map(str::trim_start);
                let literals = after.filter_map(|rest| rest.strip_prefix('"')?.split_once('"'));
                found.extend(literals.map(|(text, _)| text.to_owned()));
            }
        }
        assert!(found.len() > 20, "{found:?}");
        found
    }

    #[test]
    fn every_reason_has_its_text_and_the_page_names_no_flag() {
        let reasons = NoEffect::ALL.iter().map(|why| why.text());
        let reasons = reasons.chain(NotSimulated::ALL.iter().map(|why| why.text()));
        let reasons: Vec<String> = reasons.map(str::to_owned).chain(texts_of_values()).collect();
        for locale in Locale::all().skip(1) {
            let words = LaunchWords::of(locale);
            let absent: Vec<_> = reasons.iter().filter(|text| !words.texts.contains_key(*text)).collect();
            assert!(
                absent.is_empty(),
                "src/app/locales/{}/launch/texts.json lacks {absent:?}",
                locale.as_str()
            );
        }
        for words in all() {
            for text in reasons
                .iter()
                .map(|text| words.reason(text))
                .chain(words.words.values().cloned())
            {
                assert!(!text.contains("--"), "{text}");
            }
        }
    }

    /// Keys are texts in the source, which the compiler does not check.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests run where there are files")]
    fn the_page_uses_every_phrase_and_no_other() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = String::new();
        for folder in ["pages/launch", "pages/compare"] {
            for entry in std::fs::read_dir(own.join(folder)).expect("a folder of the page") {
                sources += &std::fs::read_to_string(entry.expect("a file").path()).expect("a source");
            }
        }
        let words = &LaunchWords::of(Locale::default()).words;
        let unused: Vec<&String> = words
            .keys()
            .filter(|key| !key.starts_with("n_") && !sources.contains(&format!("\"{key}\"")))
            .collect();
        assert_eq!(unused, Vec::<&String>::new());
        let calls = ["say(\"", "word(\"", "live(\""];
        let used: BTreeSet<&str> = calls
            .iter()
            .flat_map(|call| sources.split(call).skip(1))
            .filter_map(|rest| Some(rest.split_once('"')?.0))
            .collect();
        assert!(used.len() > 30, "{used:?}");
        for key in used {
            assert!(
                words.contains_key(key),
                "src/app/locales/en/launch/words.json lacks `{key}`"
            );
        }
    }

    #[test]
    fn gaps_are_filled_by_name() {
        let words = LaunchWords::of(Locale::default());
        assert_eq!(words.say("line", &[("line", "4")]), "line 4");
        let said = Said {
            word: "freezing_parts".into(),
            values: vec![(
                "parts".into(),
                "the vision tower and the connector and the language model".into(),
            )],
        };
        assert_eq!(
            words.remark(&said),
            "Freezing the vision tower, the connector and the language model"
        );
    }
}
