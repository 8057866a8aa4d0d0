//! Tells a run's own output from text of its data that it prints: a prompt may quote an error.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Keys of data sets and chat logs whose values are text that somebody wrote.
const KEYS: [&str; 14] = [
    "content",
    "text",
    "value",
    "prompt",
    "question",
    "answer",
    "query",
    "instruction",
    "output",
    "response",
    "input",
    "completion",
    "chosen",
    "rejected",
];

/// Marks before the text of a sample that a tool prints, as ms-swift does before it trains; the last begins a message in ChatML.
const PRINTED: [&str; 5] = ["[INPUT]", "[LABELS]", "[INPUT_IDS]", "[LABELS_IDS]", "<|im_start|>"];

/// Everything after which text of the data begins.
static MARKS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let quoted = |key: &str| [format!("\"{key}\""), format!("'{key}'")];
    let keys = KEYS.iter().flat_map(|key| quoted(key));
    AhoCorasick::new(keys.chain(PRINTED.map(str::to_owned))).expect("a few words")
});

/// Returns true if text of the data may begin in a line: a cheap test before [`is_quoted`].
pub fn may_quote(line: &str) -> bool {
    MARKS.is_match(line)
}

/// Returns true if byte `at` of a line lies within a text of the data: the value of such a key, or what a tool prints of
/// a sample's tokens.
pub fn is_quoted(line: &str, at: usize) -> bool {
    let Some(before) = line.get(..at) else { return false };
    if PRINTED.iter().any(|mark| before.contains(mark)) {
        return true;
    }
    KEYS.iter().any(|key| {
        ['"', '\''].iter().any(|&quote| {
            let named = format!("{quote}{key}{quote}");
            let Some(found) = before.rfind(&named) else {
                return false;
            };
            let value = before[found + named.len()..].trim_start();
            let Some(value) = value.strip_prefix(':') else {
                return false;
            };
            let Some(inside) = value.trim_start().strip_prefix(['"', '\'']) else {
                return false;
            };
            !is_closed(inside, quote)
        })
    })
}

/// Returns true if a quotation that has begun ends in the text.
fn is_closed(text: &str, quote: char) -> bool {
    let mut escaped = false;
    for c in text.chars() {
        if c == quote && !escaped {
            return true;
        }
        escaped = c == '\\' && !escaped;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_no_log() {
        let line = r#"{"role": "user", "content": "my run says \"CUDA out of memory\" why?"} CUDA"#;
        let at = line.find("CUDA").expect("there");
        assert!(is_quoted(line, at));
        assert!(!is_quoted(line, line.rfind("CUDA").expect("there")));
        assert!(!is_quoted("RuntimeError: CUDA out of memory", 14));
        assert!(may_quote(line) && !may_quote("RuntimeError: CUDA out of memory"));
    }
}
