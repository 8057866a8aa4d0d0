//! Decodes bytes into text.

use std::borrow::Cow;

/// Decodes UTF-8 or, as PowerShell writes it, UTF-16 with or without a mark. Bytes that are no text become `�`.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        _ => match zeros(bytes) {
            (even, odd) if odd > even && odd * 5 > bytes.len().min(HEAD) => {
                Cow::Owned(utf16(bytes, u16::from_le_bytes))
            }
            (even, odd) if even > odd && even * 5 > bytes.len().min(HEAD) => {
                Cow::Owned(utf16(bytes, u16::from_be_bytes))
            }
            _ => String::from_utf8_lossy(bytes),
        },
    }
}

/// Bytes that are looked at to tell UTF-16 from UTF-8.
const HEAD: usize = 4096;

/// Zero bytes at even and at odd places of the beginning.
fn zeros(bytes: &[u8]) -> (usize, usize) {
    let head = &bytes[..bytes.len().min(HEAD)];
    let count = |from: usize| head.iter().skip(from).step_by(2).filter(|&&b| b == 0).count();
    (count(0), count(1))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_is_read_with_and_without_its_mark() {
        let little: Vec<u8> = "CUDA 显存".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "CUDA out of memory".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&[&[0xff, 0xfe], &little[..]].concat()), "CUDA 显存");
        assert_eq!(decode(&little), "CUDA 显存");
        assert_eq!(decode(&big), "CUDA out of memory");
        assert_eq!(decode("显存\u{0}".as_bytes()), "显存\u{0}");
    }
}
