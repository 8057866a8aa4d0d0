//! Parses and formats numbers for the course's data and its readers.

/// Most digits that a number may have: as many as fit in 128 bits whatever they are.
const DIGITS: usize = 38;

/// Most decimals: up to here a quotient of 128 bits has more bits than a float.
const DECIMALS: usize = 30;

/// Parses a plain decimal such as `0.85` or `7000000000`, to the nearest float; `None` for signs, commas and anything
/// else, and for more than 38 digits or 30 decimals.
///
/// The standard library's parser takes any number of digits, and is 18 KB of the page's program, of which 10 KB are a
/// table of powers of five that does not compress.
///
/// ```
/// use vramscope_course::read_number;
/// assert_eq!(read_number("0.85"), Some(0.85));
/// assert_eq!(read_number("1,5"), None);
/// ```
pub fn read(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let has_digits = text.bytes().any(|b| b.is_ascii_digit());
    let digits = [whole.trim_start_matches('0'), fraction].concat();
    if !has_digits || digits.len() > DIGITS || fraction.len() > DECIMALS {
        return None;
    }
    let mut units: u128 = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        units = units * 10 + u128::from(digit.to_digit(10)?);
    }
    Some(divided(units, fraction.len() as u32))
}

/// The float nearest to `units` / 10^`decimals`.
fn divided(units: u128, decimals: u32) -> f64 {
    if decimals == 0 || units == 0 {
        return units as f64;
    }
    // The quotient by the power of five has 58 bits or more, of which a float keeps 53; a remainder counts as one
    // more bit, so that what is not halfway between two floats is not rounded as if it were. Powers of two are exact.
    let (shift, five) = (units.leading_zeros(), 5_u128.pow(decimals));
    let scaled = units << shift;
    let quotient = (scaled / five) | u128::from(!scaled.is_multiple_of(five));
    let scale = (0..shift + decimals).fold(1.0, |scale, _| scale * 2.0);
    quotient as f64 / scale
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_float_is_read_as_it_was_written(value in 1e-12..1e18_f64) {
            prop_assert_eq!(read(&value.to_string()), Some(value));
        }

        #[test]
        fn a_number_is_the_standard_librarys(whole in "[0-9]{0,20}", fraction in "[0-9]{0,30}") {
            let text = format!("{whole}.{fraction}");
            match read(&text) {
                Some(value) => prop_assert_eq!(Ok(value), text.parse()),
                None => prop_assert!(text == "." || text.len() > DIGITS, "{}", text),
            }
        }
    }

    #[test]
    fn only_plain_decimals_are_numbers() {
        assert_eq!(read("7000000000"), Some(7e9));
        assert_eq!(read(".5"), Some(0.5));
        assert_eq!(read("2."), Some(2.0));
        assert_eq!(read("007.500"), Some(7.5));
        assert_eq!(read("0.000"), Some(0.0));
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
