//! Parses and formats numbers for the course's data and its readers.

/// Parses a plain decimal such as `0.85` or `7000000000`; `None` for signs, commas and anything else.
///
/// ```
/// use vramscope_course::read_number;
/// assert_eq!(read_number("0.85"), Some(0.85));
/// assert_eq!(read_number("1,5"), None);
/// ```
pub fn read(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    // Reject numbers that are too large for a float.
    text.parse().ok().filter(|value: &f64| is_plain && value.is_finite())
}

/// Formats a number for reading: separated thousands, at most `decimals` decimals without trailing zeros, and a true
/// minus sign.
///
/// ```
/// use vramscope_course::write_number;
/// assert_eq!(write_number(7e9, 2), "7,000,000,000");
/// assert_eq!(write_number(-0.25, 1), "−0.3");
/// assert_eq!(write_number(2.50, 2), "2.5");
/// ```
pub fn write(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "—".to_owned();
    }
    // Round half away from zero, as taught; the formatter would round half to even.
    let scale = 10_u64.pow(decimals as u32) as f64;
    let rounded = (value.abs() * scale).round() / scale;
    let text = format!("{rounded:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let sign = if value < 0.0 && rounded > 0.0 { "−" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    let whole = whole
        .parse()
        .map_or_else(|_| whole.to_owned(), vramscope_engine::format::grouped);
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimals_are_numbers() {
        assert_eq!(read("7000000000"), Some(7e9));
        assert_eq!(read(".5"), Some(0.5));
        assert_eq!(read("2."), Some(2.0));
        for text in ["", ".", "-1", "1e9", "1.2.3", "0x10", "NaN", "inf", &"9".repeat(400)] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_written_for_reading() {
        assert_eq!(write(173.624, 2), "173.62");
        assert_eq!(write(0.0, 2), "0");
        assert_eq!(write(-0.001, 2), "0");
        assert_eq!(write(1234567.891, 1), "1,234,567.9");
        assert_eq!(write(f64::NAN, 1), "—");
    }
}
