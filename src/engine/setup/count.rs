//! Numbers as people write them: `4096`, `4k`, `1e3`, `1_000`, `1,000`. Every frontend reads them here.

use std::fmt;

/// Meaning of `k` and `m` after a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// 1024 and 1024²: lengths, sizes of a batch, pixels. A context of `4k` has 4096 positions.
    Binary,
    /// 1000 and 1000²: amounts of data. A dataset of `50k` has 50,000 samples.
    Decimal,
}

/// Reason that a text is no whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCount {
    /// Not written as a whole number.
    Form,
    /// More than 64 bits hold.
    TooLarge,
}

impl fmt::Display for NotCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "it is not a whole number such as 4096, 4k or 1e3",
            Self::TooLarge => "it is too large",
        })
    }
}

impl std::error::Error for NotCount {}

/// Reads a whole number, the same for every frontend. The text is read whole or not at all:
///
/// ```
/// use vramscope_engine::setup::{NotCount, Prefix, read_count};
/// let read = |text| read_count(text, Prefix::Binary);
/// assert_eq!(["4096", "4k", "4K", "1.5k", "1m"].map(read), [4096, 4096, 4096, 1536, 1 << 20].map(Ok));
/// assert_eq!(["1e3", "2.5e3", "1_000", "1,000", "12 000"].map(read), [1000, 2500, 1000, 1000, 12_000].map(Ok));
/// assert_eq!(read_count("50k", Prefix::Decimal), Ok(50_000));
/// for no_count in ["", "-3", "1.5", "1.0004k", "4kb", "1,00", "1e-1", "0x10"] {
///     assert_eq!(read(no_count), Err(NotCount::Form), "{no_count}");
/// }
/// ```
///
/// Full-width digits, which input methods of Chinese and Japanese write, are digits. Commas and spaces separate groups of
/// three digits alone: elsewhere a comma is a decimal point in half of the world.
///
/// # Errors
/// If the text is anything else, or the number does not fit into 64 bits.
pub fn read_count(text: &str, prefix: Prefix) -> Result<u64, NotCount> {
    let text: String = text.trim().chars().map(narrow).collect();
    let (number, factor) = split_factor(&text, prefix)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(NotCount::Form),
        Some(parts) => parts,
        None => (number, ""),
    };
    let whole = ungrouped(whole).ok_or(NotCount::Form)?;
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NotCount::Form);
    }
    let fraction = fraction.trim_end_matches('0');
    // What is left of the fraction has to vanish in the factor: 1.5k is whole, 1.5 is not.
    let decimals = u32::try_from(fraction.len()).map_err(|_| NotCount::Form)?;
    let parts = [whole.trim_start_matches('0'), fraction].concat();
    let units: u128 = match parts.as_str() {
        "" => 0,
        digits => digits.parse().map_err(|_| NotCount::TooLarge)?,
    };
    let scaled = units.checked_mul(u128::from(factor)).ok_or(NotCount::TooLarge)?;
    let divisor = 10_u128.checked_pow(decimals).ok_or(NotCount::Form)?;
    if !scaled.is_multiple_of(divisor) {
        return Err(NotCount::Form);
    }
    u64::try_from(scaled / divisor).map_err(|_| NotCount::TooLarge)
}

/// Reads a whole number of a list that commas separate, where the second part of `1,000` is no number.
///
/// # Errors
/// Those of [`read_count`].
pub fn read_listed_count(text: &str) -> Result<u64, NotCount> {
    let text = text.trim();
    if text.len() > 1 && text.starts_with(['0', '０']) {
        return Err(NotCount::Form);
    }
    read_count(text, Prefix::Binary)
}

/// Reads a finite decimal, such as `0.05`, `2.5` or `1e-3`, whole or not at all; `None` for anything else.
///
/// ```
/// use vramscope_engine::setup::read_number;
/// assert_eq!(["0.05", "1e3", "２．５"].map(read_number), [Some(0.05), Some(1000.0), Some(2.5)]);
/// assert_eq!(["24 GiB", "1,5", "NaN", "inf", "1e999"].map(read_number), [None; 5]);
/// ```
pub fn read_number(text: &str) -> Option<f64> {
    let text: String = text.trim().chars().map(narrow).collect();
    let is_decimal = text.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    let number: f64 = text.parse().ok().filter(|_| is_decimal)?;
    number.is_finite().then_some(number)
}

/// Splits `4k` and `1e3` into the number and what it is multiplied by.
fn split_factor(text: &str, prefix: Prefix) -> Result<(&str, u64), NotCount> {
    let thousand: u64 = match prefix {
        Prefix::Binary => 1024,
        Prefix::Decimal => 1000,
    };
    let lower = |end: &[char]| text.strip_suffix(end).map(str::trim_end);
    if let Some(number) = lower(&['k', 'K']) {
        return Ok((number, thousand));
    }
    if let Some(number) = lower(&['m', 'M']) {
        return Ok((number, thousand * thousand));
    }
    let Some((number, exponent)) = text.split_once(['e', 'E']) else {
        return Ok((text, 1));
    };
    let digits = exponent.strip_prefix('+').unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NotCount::Form);
    }
    let power = digits.parse().ok().and_then(|power| 10_u64.checked_pow(power));
    power.map(|power| (number, power)).ok_or(NotCount::TooLarge)
}

/// Digits without the separators between them; `None` if there are none, or something else stands among them.
fn ungrouped(text: &str) -> Option<String> {
    let separator = text.chars().find(|c| matches!(c, ',' | '_' | ' '));
    let groups: Vec<&str> = match separator {
        Some(separator) => text.split(separator).collect(),
        None => vec![text],
    };
    let are_digits = groups
        .iter()
        .all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    let are_thousands = groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    // `_` separates digits anywhere, and means nothing else.
    let are_thousands = are_thousands || matches!(separator, None | Some('_'));
    (are_digits && are_thousands).then(|| groups.concat())
}

/// The ASCII character of a full-width one.
fn narrow(c: char) -> char {
    match c {
        '！'..='～' => char::from_u32(c as u32 - 0xFEE0).unwrap_or(c),
        '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<u64, NotCount> {
        read_count(text, Prefix::Binary)
    }

    #[test]
    fn lengths_are_read_as_they_are_spoken_of() {
        for (text, count) in [
            ("32k", 32_768),
            ("128K", 131_072),
            ("4 k", 4096),
            ("1M", 1_048_576),
            ("0.5k", 512),
            ("１６", 16),
            ("４ｋ", 4096),
            (" 2,048 ", 2048),
            ("1,234,567", 1_234_567),
            ("1E3", 1000),
            ("1e+3", 1000),
            ("1.5e1", 15),
            ("007", 7),
            ("0", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(read(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn nothing_is_read_by_its_beginning() {
        for text in [
            "",
            " ",
            "-3",
            "−3",
            "+3",
            "1.5",
            "1.",
            ".5",
            "1e",
            "1e-1",
            "e3",
            "k",
            "4kk",
            "4kb",
            "4x",
            "four",
            "1,00",
            "1,0000",
            "1234,567",
            "1,,000",
            ",1",
            "1_",
            "_1",
            "1,000_000",
            "1.0001k",
            "0x10",
            "1e1.5",
            "4;",
        ] {
            assert_eq!(read(text), Err(NotCount::Form), "{text}");
        }
        for text in ["18446744073709551616", "99999999999999999999m", "1e20", "1e99999999999"] {
            assert_eq!(read(text), Err(NotCount::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_reads_as_itself(count: u64) {
            let plain = count.to_string();
            prop_assert_eq!(read(&plain), Ok(count));
            prop_assert_eq!(read(&format!("{plain}e0")), Ok(count));
        }

        #[test]
        fn any_text_is_answered(text in ".*") {
            read(&text).ok();
        }
    }
}
