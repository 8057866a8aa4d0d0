//! Percent escapes of a URL's fragment, and base64 for long texts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Escapes all but what may stand in a query value unescaped.
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

/// Takes escapes out; `None` when an escape is cut or the bytes are not UTF-8.
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

/// Escapes what may not stand in a double-quoted attribute of HTML.
pub fn quote(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// A long text in the letters of a URL.
pub fn pack(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// What [`pack`] packed.
pub fn unpack(packed: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(packed).ok()?).ok()
}
