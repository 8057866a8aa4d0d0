//! Percent-encodes a URL's fragment and base64-encodes long texts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Percent-encodes everything but the unreserved characters of RFC 3986.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Decodes percent escapes; `None` if an escape is truncated or the bytes are not UTF-8.
pub fn unescape(text: &str) -> Option<String> {
    // `percent_decode_str` keeps broken escapes as they are.
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Escapes text for a double-quoted HTML attribute.
pub fn quote(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Encodes a long text as URL-safe base64.
pub fn pack(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Decodes the output of [`pack`].
pub fn unpack(packed: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(packed).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_but_unreserved_bytes_are_escaped(text in ".*") {
            let byte = |byte: u8| match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            };
            prop_assert_eq!(escape(&text), text.bytes().map(byte).collect::<String>());
        }

        #[test]
        fn whole_escapes_of_utf_8_are_decoded(pieces in prop::collection::vec("[a%+é]|%[0-9a-f]{2}|%C3%a9|%[0-9A-F]?|%[g-z][0-9]", 0..8)) {
            let text = pieces.concat();
            let mut bytes = Vec::new();
            let mut left = text.bytes();
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            let mut is_whole = true;
            while let Some(byte) = left.next() {
                bytes.push(match byte {
                    b'%' => match (digit(left.next()), digit(left.next())) {
                        (Some(high), Some(low)) => (high << 4 | low) as u8,
                        _ => {
                            is_whole = false;
                            break;
                        }
                    },
                    b'+' => b' ',
                    other => other,
                });
            }
            let decoded = String::from_utf8(bytes).ok().filter(|_| is_whole);
            prop_assert_eq!(unescape(&text), decoded);
        }
    }
}
