//! Reads JSON as Python's `json.dumps` writes it, with `Infinity`, `-Infinity` and `NaN` as numbers.

use std::borrow::Cow;

use serde_json::Value;

/// Words that Python writes and JSON does not have.
const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Reads a text; a number that is not finite becomes its word as a string, which no reader takes for a number.
///
/// # Errors
/// When the text is not JSON apart from these words.
pub fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&quoted(text))
}

/// Puts quotes around each of the words that is outside of a string and not a part of another word.
fn quoted(text: &str) -> Cow<'_, str> {
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at, mut in_text) = (String::with_capacity(text.len() + 16), 0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_text => at += 1,
            b'"' => in_text = !in_text,
            b'-' | b'I' | b'N' if !in_text => {
                if let Some(word) = word_at(bytes, at) {
                    out.push_str(&text[copied..at]);
                    out.extend(["\"", word, "\""]);
                    at += word.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the word that begins at `at`, if JSON punctuation or white space surrounds it.
fn word_at(bytes: &[u8], at: usize) -> Option<&'static str> {
    let is_edge = |byte: Option<&u8>| byte.is_none_or(|byte| byte.is_ascii_whitespace() || b",:[]{}".contains(byte));
    let word = WORDS
        .into_iter()
        .find(|word| bytes[at..].starts_with(word.as_bytes()))?;
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    (is_edge(before) && is_edge(bytes.get(at + word.len()))).then_some(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_finite_is_read_as_its_word() {
        let text = r#"{"time_step_limit": [0.0, Infinity], "a": -Infinity, "b":NaN,"c":[NaN,1]}"#;
        let expected = json!({"time_step_limit": [0.0, "Infinity"], "a": "-Infinity", "b": "NaN", "c": ["NaN", 1]});
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn texts_keep_these_words() {
        let text = r#"{"NaN": "Infinity", "say \"NaN\\": ["-Infinity, NaN", Infinity], "é NaN": 1}"#;
        let expected = json!({"NaN": "Infinity", "say \"NaN\\": ["-Infinity, NaN", "Infinity"], "é NaN": 1});
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn nothing_else_is_forgiven() {
        for text in [
            "[NaN1]",
            "[+Infinity]",
            "[Inf]",
            "[nan]",
            "[--Infinity]",
            "[1NaN]",
            "[NaN",
            "{NaN: 1}x",
            "[1,]",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
