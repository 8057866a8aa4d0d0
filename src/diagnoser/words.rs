//! Phrases of findings and of the diagnosis page. They are compiled into this program, so that only visitors of the
//! page download them.

/// Returns the phrases of a language as a list of two objects: those of findings, then those of the page.
pub fn phrases(language: &str) -> String {
    let [findings, page] = match language {
        "zh-CN" => [
            include_str!("words/finding.zh-CN.json"),
            include_str!("words/page.zh-CN.json"),
        ],
        "zh-TW" => [
            include_str!("words/finding.zh-TW.json"),
            include_str!("words/page.zh-TW.json"),
        ],
        // The same file as the command line's.
        _ => [
            include_str!("../diagnose/finding/words/en.json"),
            include_str!("words/page.en.json"),
        ],
    };
    format!("[{findings},{page}]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
        for language in ["zh-CN", "zh-TW"] {
            let other = read(language);
            assert_eq!(english.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
            for (key, text) in &english {
                assert_eq!(gaps(text), gaps(&other[key]), "{key} in {language}");
            }
        }
    }
}
