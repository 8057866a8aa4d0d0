//! Bytes as text that may stand in a script element: 91 printable letters, of which two hold 13 bits or 14 (basE91).
//! 23% is added, where base64 adds 33%.

/// Letters, in rising order of ASCII: all that are printable but space and the three that markup is made of.
const LETTERS: u32 = 91;
/// Two letters have this many values more than 13 bits: so many of these take a 14th bit.
const WIDE: u32 = LETTERS * LETTERS - (1 << 13);

/// The text of some bytes; `src/app/js/unpack.js` reads it.
pub fn dense(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 16 / 13 + 2);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in bytes {
        bits |= u32::from(byte) << count;
        count += 8;
        if count > 13 {
            let narrow = bits & 0x1fff;
            let taken = if narrow < WIDE { 14 } else { 13 };
            let value = bits & ((1 << taken) - 1);
            bits >>= taken;
            count -= taken;
            text.extend([letter(value % LETTERS), letter(value / LETTERS)]);
        }
    }
    if count > 0 {
        text.push(letter(bits % LETTERS));
        if count > 7 || bits >= LETTERS {
            text.push(letter(bits / LETTERS));
        }
    }
    text
}

fn letter(value: u32) -> char {
    let mut code = value as u8 + b'!';
    for of_markup in *b"&<>" {
        code += u8::from(code >= of_markup);
    }
    char::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `src/app/js/unpack.js` does.
    fn read(text: &str) -> Vec<u8> {
        let value = |letter: u8| {
            let markup = b"&<>".iter().filter(|&&of_markup| letter > of_markup).count();
            u32::from(letter - b'!') - markup as u32
        };
        let mut bytes = Vec::new();
        let (mut bits, mut count) = (0_u32, 0);
        for two in text.as_bytes().chunks(2) {
            let [low, high] = [Some(&two[0]), two.get(1)].map(|letter| letter.map(|&letter| value(letter)));
            let read = low.unwrap_or(0) + high.unwrap_or(0) * LETTERS;
            bits |= read << count;
            count += match high {
                None => 8 - count,
                Some(_) if read & 0x1fff < WIDE => 14,
                Some(_) => 13,
            };
            while count > 7 {
                bytes.push(bits as u8);
                bits >>= 8;
                count -= 8;
            }
        }
        bytes
    }

    #[test]
    fn what_is_written_is_read_whatever_its_length() {
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for length in 0..300 {
            for bytes in [
                (0..length).map(|_| noise()).collect(),
                vec![0; length],
                vec![255; length],
            ] {
                assert_eq!(read(&dense(&bytes)), bytes, "{length}");
            }
        }
        let bytes: Vec<u8> = (0..100_000).map(|_| noise()).collect();
        let text = dense(&bytes);
        assert!(text.len() < 123_100, "{}", text.len());
        assert!(
            text.bytes()
                .all(|letter| letter.is_ascii_graphic() && !b"&<>".contains(&letter))
        );
    }
}
