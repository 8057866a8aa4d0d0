//! Lines that hold numbers, and the numbers in them.

/// A line whose numbers are written as differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// An operation: `"#S:M"` are its tensors, `"n":[[S,BYTES]]` what it makes, `"mod":M` its module.
    Operation,
    /// `"s":[S,…]`.
    Free,
    /// `"s":S`.
    Why,
    /// `"s":S`, a storage that is a parameter from then on.
    Parameter,
    /// Any other, which stays as it is.
    Other,
}

impl Line {
    /// The kind of a line, packed or not.
    pub fn of(line: &[u8]) -> Self {
        let kinds: [(&[u8], Self); 4] = [
            (b"{\"t\":\"op\",", Self::Operation),
            (b"{\"t\":\"free\",", Self::Free),
            (b"{\"t\":\"why\",", Self::Why),
            (b"{\"t\":\"param\",", Self::Parameter),
        ];
        let found = kinds.into_iter().find(|(start, _)| line.starts_with(start));
        found.map_or(Self::Other, |(_, kind)| kind)
    }
}

/// The integer at a place, and where it ends; none if there is no number, or one of more than 15 digits.
pub fn integer(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = text.get(at) == Some(&b'-');
    let begin = at + usize::from(negative);
    let (mut end, mut value) = (begin, 0_i64);
    while let Some(digit) = text.get(end).filter(|byte| byte.is_ascii_digit()) {
        if end - begin == 15 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
        end += 1;
    }
    (end > begin).then_some((if negative { -value } else { value }, end))
}

/// Writes an integer: most of unpacking, so that a formatter's generality would be felt.
pub fn write(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let (begin, mut left) = (out.len(), value.unsigned_abs());
    // Its digits, the last one first.
    loop {
        out.push(b'0' + (left % 10) as u8);
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out[begin..].reverse();
}

/// Copies a line, and has `number` write each number after `key` anew: one, or a list if the key ends with a bracket.
/// `number` gets the place of a number and returns the place after it; `None` if a number is missing or wrong.
pub fn renumber(
    line: &[u8],
    key: &[u8],
    out: &mut Vec<u8>,
    mut number: impl FnMut(usize, &mut Vec<u8>) -> Option<usize>,
) -> Option<()> {
    let mut at = line.windows(key.len()).position(|window| window == key)? + key.len();
    out.extend_from_slice(&line[..at]);
    loop {
        at = number(at, out)?;
        if !(key.ends_with(b"[") && line.get(at) == Some(&b',')) {
            out.extend_from_slice(&line[at..]);
            return Some(());
        }
        out.push(b',');
        at += 1;
    }
}
