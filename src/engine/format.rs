//! Formats numbers for every frontend: bytes, counts, shares and errors.
//!
//! Bytes are in binary units, counts in powers of a thousand. Rounding happens here and nowhere
//! earlier.

use crate::units::Bytes;

/// Half of a hundredth of 2³⁰ is 5368709.12: smaller amounts round to 0.00 GiB.
const LAST_ROUNDED_DOWN: u64 = 5_368_709;

/// Formats GiB with two decimals, for columns that are compared: `12.34 GiB`.
///
/// An amount that would round to nothing is written as less than a hundredth.
///
/// ```
/// use vramscope_engine::{format, units::Bytes};
/// assert_eq!(format::gib(Bytes::mib(1536)), "1.50 GiB");
/// assert_eq!(format::gib(Bytes::new(512)), "<0.01 GiB");
/// assert_eq!(format::gib(Bytes::ZERO), "0.00 GiB");
/// ```
pub fn gib(bytes: Bytes) -> String {
    match bytes.get() {
        1..=LAST_ROUNDED_DOWN => "<0.01 GiB".into(),
        _ => format!("{:.2} GiB", bytes.as_gib()),
    }
}

/// Formats a difference of bytes with its sign, a true minus: `−12.34 GiB`, `+0.50 GiB`, `±0.00 GiB`.
///
/// ```
/// use vramscope_engine::format;
/// assert_eq!(format::difference(-(3 << 29)), "−1.50 GiB");
/// assert_eq!(format::difference(1 << 30), "+1.00 GiB");
/// assert_eq!(format::difference(-512), "±0.00 GiB");
/// ```
pub fn difference(bytes: i64) -> String {
    let sign = match bytes {
        _ if rounds_to_nothing(bytes) => "±",
        ..0 => "−",
        _ => "+",
    };
    format!("{sign}{:.2} GiB", Bytes::new(bytes.unsigned_abs()).as_gib())
}

/// Returns true if a difference is formatted as zero.
pub const fn rounds_to_nothing(bytes: i64) -> bool {
    bytes.unsigned_abs() <= LAST_ROUNDED_DOWN
}

/// Formats the exact count with thousands separators: `13,249,974,272 B`.
///
/// ```
/// use vramscope_engine::{format, units::Bytes};
/// assert_eq!(format::exact(Bytes::gib(1)), "1,073,741,824 B");
/// ```
pub fn exact(bytes: Bytes) -> String {
    format!("{} B", grouped(bytes.get()))
}

/// Formats a whole number with thousands separators: `124,439,808`.
///
/// ```
/// assert_eq!(vramscope_engine::format::grouped(1_234_567), "1,234,567");
/// assert_eq!(vramscope_engine::format::grouped(12), "12");
/// ```
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count of parameters with three significant digits: `124 M`, `7.06 B`.
///
/// ```
/// use vramscope_engine::format::count;
/// assert_eq!(count(124_439_808), "124 M");
/// assert_eq!(count(7_063_427_072), "7.06 B");
/// assert_eq!(count(999_999_999), "1.00 B");
/// assert_eq!(count(640), "640");
/// ```
pub fn count(n: u64) -> String {
    scaled(n, &[("B", 1e9), ("M", 1e6), ("K", 1e3)]).unwrap_or_else(|| n.to_string())
}

/// Formats a count with three significant digits in the largest of these units, falling in size, in which the rounded
/// figure is at least one; `None` if it is less than one in all of them.
///
/// ```
/// use vramscope_engine::format::scaled;
/// let units = [("亿", 1e8), ("万", 1e4)];
/// assert_eq!(scaled(7_063_427_072, &units).as_deref(), Some("70.6 亿"));
/// assert_eq!(scaled(640, &units), None);
/// ```
pub fn scaled(n: u64, units: &[(&str, f64)]) -> Option<String> {
    let (unit, size) = units.iter().find(|(_, size)| n as f64 >= size * 0.9995)?;
    let value = n as f64 / size;
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    Some(format!("{value:.decimals$} {unit}"))
}

/// Formats a part of a whole in whole per cents: `37%`; `<1%` for less than one half.
///
/// ```
/// use vramscope_engine::{format::share, units::Bytes};
/// assert_eq!(share(Bytes::gib(3), Bytes::gib(8)), "38%");
/// assert_eq!(share(Bytes::mib(1), Bytes::gib(8)), "<1%");
/// assert_eq!(share(Bytes::ZERO, Bytes::ZERO), "0%");
/// ```
pub fn share(part: Bytes, whole: Bytes) -> String {
    if part == Bytes::ZERO || whole == Bytes::ZERO {
        return "0%".into();
    }
    let percent = part.get() as f64 / whole.get() as f64 * 100.0;
    if percent < 0.5 {
        "<1%".into()
    } else {
        format!("{percent:.0}%")
    }
}

/// Formats a relative error with its sign: `+0.32%`, `-1.50%`, `0.00%`.
///
/// ```
/// use vramscope_engine::format::error;
/// assert_eq!(error(0.00321), "+0.32%");
/// assert_eq!(error(-0.015), "-1.50%");
/// assert_eq!(error(-0.000001), "0.00%");
/// ```
pub fn error(relative: f64) -> String {
    let percent = format!("{:+.2}%", relative * 100.0);
    match percent.as_str() {
        "+0.00%" | "-0.00%" => "0.00%".into(),
        _ => percent,
    }
}
