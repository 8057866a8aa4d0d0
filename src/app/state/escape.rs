//! Percent-encodes a URL's fragment and base64-encodes long texts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Percent-encodes everything but the unreserved characters of RFC 3986.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Decodes percent escapes; `None` if an escape is truncated or the bytes are not UTF-8.
pub fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
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
