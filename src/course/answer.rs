//! Parses and judges answers as people type them.

use super::{Measure, Unit, number};

/// A typed answer in the base unit of its measure.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedAnswer {
    /// Possible values of the number: `1,234` can mean 1234 or 1.234.
    pub readings: Vec<f64>,
    /// The typed unit, if any.
    pub unit: Option<Unit>,
}

/// Judgement of an answer compared with the right one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judged {
    /// Within the tolerance.
    Right,
    /// The text contains no number, or more than one.
    Unreadable,
    /// The unit is unknown or measures something else.
    WrongUnit,
    /// The number is right with this unit, but wrong with the one that was typed or implied.
    RightWithUnit(&'static str),
    /// The number is right up to a power of ten or of 1024.
    WrongScale,
    /// The answer is too high by this factor.
    TooHigh(f64),
    /// The answer is too low by this factor.
    TooLow(f64),
}

/// Converts full-width characters, as input methods for Chinese produce them, to ASCII.
fn plain(c: char) -> char {
    match c {
        '！'..='～' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '。' => '.',
        '、' | '٬' => ',',
        'μ' => 'µ',
        '−' => '-',
        other => other,
    }
}

/// Characters to ignore: thousands separators other than comma and point, and signs before a number.
const fn is_passed_over(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '_' | '\'' | '’' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '≈' | '~' | '=' | '约' | '約' | '+'
        )
}

impl TypedAnswer {
    /// Reads an answer such as `173.62 GB`, `161,7 GiB`, `１２．５％` or `5 329`.
    ///
    /// # Errors
    /// [`Judged::Unreadable`] or [`Judged::WrongUnit`].
    ///
    /// ```
    /// use vramscope_course::TypedAnswer;
    /// let answer = TypedAnswer::read("161,7 GiB").unwrap();
    /// assert_eq!(answer.readings, [161.7 * 1073741824.0]);
    /// ```
    pub fn read(text: &str) -> Result<Self, Judged> {
        let text: String = text.chars().map(plain).filter(|c| !is_passed_over(*c)).collect();
        let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
        let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let numbers = readings(digits);
        if numbers.is_empty() || unit.contains(is_digit) {
            return Err(Judged::Unreadable);
        }
        if unit.is_empty() {
            return Ok(Self {
                readings: numbers,
                unit: None,
            });
        }
        let unit = Unit::named(unit).ok_or(Judged::WrongUnit)?;
        Ok(Self {
            readings: numbers.iter().map(|n| n * unit.size).collect(),
            unit: Some(unit),
        })
    }
}

/// Possible values of digits with commas and points, the most likely first.
fn readings(text: &str) -> Vec<f64> {
    let plain = |decimal: char| {
        let thousands = if decimal == '.' { ',' } else { '.' };
        let (whole, fraction) = text.split_once(decimal).unwrap_or((text, ""));
        let mut groups = whole.split(thousands);
        let first = groups.next().unwrap_or_default();
        let fits = !whole.contains(thousands) || (1..=3).contains(&first.len()) && groups.all(|g| g.len() == 3);
        let digits: String = whole.chars().filter(|c| *c != thousands).collect();
        fits.then(|| number::read(&format!("{digits}.{fraction}"))).flatten()
    };
    let mut found: Vec<f64> = [plain('.'), plain(',')].into_iter().flatten().collect();
    found.dedup();
    found
}

/// Returns true if a value is within a relative tolerance of the right one.
fn is_near(value: f64, right: f64, tolerance: f64) -> bool {
    (value - right).abs() <= right.abs() * tolerance
}

/// Judges a typed answer against the right value, which is in the base unit of `unit`'s measure. An answer without a
/// unit is read in `unit`.
pub fn judge(text: &str, right: f64, unit: Unit, tolerance: f64) -> Judged {
    let answer = match TypedAnswer::read(text) {
        Ok(answer) => answer,
        Err(why) => return why,
    };
    // A share may be typed as 0.25 or as 25%.
    let is_same =
        |given: Measure| given == unit.measure || matches!((given, unit.measure), (Measure::Count, Measure::Share));
    let given = answer.unit.unwrap_or(unit);
    if !is_same(given.measure) {
        return Judged::WrongUnit;
    }
    let numbers: Vec<f64> = match answer.unit {
        Some(typed) => answer.readings.iter().map(|value| value / typed.size).collect(),
        None => answer.readings,
    };
    let right_with = |size: f64, tolerance: f64| numbers.iter().any(|n| is_near(n * size, right, tolerance));
    if right_with(given.size, tolerance) {
        return Judged::Right;
    }
    // Confusing 1000 with 1024 changes a value by less than 10%, so only a close match counts as that mistake.
    let slip = tolerance.min(0.005);
    for name in ["GB", "GiB", "MB", "MiB", "ms", "s", "%"] {
        let other = Unit::named(name).filter(|other| other.measure == unit.measure);
        if let Some(other) = other.filter(|other| other.name != given.name && right_with(other.size, slip)) {
            return Judged::RightWithUnit(other.name);
        }
    }
    for scale in [1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3, 1024.0, 1.0 / 1024.0] {
        if right_with(given.size * scale, slip) {
            return Judged::WrongScale;
        }
    }
    let ratio = numbers.first().map_or(0.0, |n| n * given.size) / right;
    if ratio > 1.0 {
        Judged::TooHigh(ratio)
    } else {
        Judged::TooLow(1.0 / ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str) -> Unit {
        Unit::named(name).expect(name)
    }

    #[test]
    fn right_answers_are_accepted_in_any_sensible_form() {
        let right = 173.62e9;
        for text in [
            "173.62 GB",
            "173,62GB",
            "173.62",
            "161.7 GiB",
            "161,7 GiB",
            "161.7gib",
            "173 620 MB",
            "173,620 MB",
            "173.620 MB",
            "173,620,000,000 B",
            "173.620.000.000 bytes",
            "0.17362 TB",
            "１７３．６２　ＧＢ",
            "１７３，６２ GB",
            "≈ 173.6 GB",
            "约173.6G",
            "173’620 MB",
        ] {
            assert_eq!(judge(text, right, unit("GB"), 0.005), Judged::Right, "{text}");
        }
        for text in ["5329", "5,329", "5.329", "5 329", "５３２９", "5329 tokens", "5329个"] {
            assert_eq!(judge(text, 5329.0, unit(""), 0.0), Judged::Right, "{text}");
        }
        for text in ["25%", "25 ％", "25", "0.25x", "25.0 percent"] {
            assert_eq!(judge(text, 0.25, unit("%"), 0.01), Judged::Right, "{text}");
        }
        assert_eq!(judge("50 ms", 0.05, unit("ms"), 0.01), Judged::Right);
        assert_eq!(judge("0,05 秒", 0.05, unit("ms"), 0.01), Judged::Right);
        assert_eq!(judge("70 亿", 7e9, unit(""), 0.01), Judged::Right);
    }

    #[test]
    fn wrong_answers_say_what_is_wrong() {
        let right = 173.62e9;
        let judge = |text| judge(text, right, unit("GB"), 0.005);
        assert_eq!(judge("173.62 GiB"), Judged::RightWithUnit("GB"));
        assert_eq!(judge("161.7 GB"), Judged::RightWithUnit("GiB"));
        assert_eq!(judge("161.7"), Judged::RightWithUnit("GiB"));
        assert_eq!(judge("1736.2 GB"), Judged::WrongScale);
        assert_eq!(judge("12 ms"), Judged::WrongUnit);
        assert_eq!(judge("12 parsec"), Judged::WrongUnit);
        for text in ["", "many", "GB", "1.2.3,4,5", "12 GB 13", "-5 GB", "1,2,3"] {
            assert_eq!(judge(text), Judged::Unreadable, "{text}");
        }
        assert_eq!(judge("347.24 GB"), Judged::TooHigh(2.0));
        assert_eq!(judge("86.81 GB"), Judged::TooLow(2.0));
        assert!(matches!(judge("0 GB"), Judged::TooLow(_)));
    }
}
