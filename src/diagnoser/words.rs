//! Phrases of findings and of the diagnosis page. They are compiled into this program, so that only visitors of the
//! page download them.

/// Phrases of findings and of the page, by the tag of their language.
const WORDS: &[(&str, [&str; 2])] = &include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// Returns the phrases of a language as a list of two objects: those of findings, then those of the page.
pub fn phrases(language: &str) -> String {
    let known = WORDS.iter().find(|(tag, _)| *tag == language);
    let [findings, page] = known.unwrap_or(&WORDS[0]).1;
    format!("[{findings},{page}]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use vramscope_phrases::LANGUAGES;

    use super::*;

    fn read(language: &str) -> BTreeMap<String, String> {
        let all: Vec<BTreeMap<String, String>> = serde_json::from_str(&phrases(language)).expect("two objects");
        all.into_iter().flatten().collect()
    }

    #[test]
    fn every_language_says_everything_with_the_same_gaps() {
        let gaps = |text: &str| {
            let mut gaps: Vec<String> = text.split("{{ ").skip(1).map(|rest| rest[..1].to_string()).collect();
            gaps.sort();
            gaps.dedup();
            gaps
        };
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
