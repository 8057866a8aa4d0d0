//! Units of the course's numbers.

/// Quantity that a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Memory, in bytes.
    Memory,
    /// Time, in seconds.
    Time,
    /// A share of 1.
    Share,
    /// A count or a ratio.
    Count,
}

/// A unit and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Symbol after a number; empty for counts.
    pub name: &'static str,
    /// Quantity that the unit measures.
    pub measure: Measure,
    /// Size in the base unit of its measure.
    pub size: f64,
}

const fn unit(name: &'static str, measure: Measure, size: f64) -> Unit {
    Unit { name, measure, size }
}

/// All units. SI prefixes are powers of 1000, IEC's of 1024 (ISO/IEC 80000-13).
const ALL: [Unit; 21] = [
    unit("", Measure::Count, 1.0),
    unit("B", Measure::Memory, 1.0),
    unit("KB", Measure::Memory, 1e3),
    unit("KiB", Measure::Memory, 1024.0),
    unit("MB", Measure::Memory, 1e6),
    unit("MiB", Measure::Memory, 1_048_576.0),
    unit("GB", Measure::Memory, 1e9),
    unit("GiB", Measure::Memory, 1_073_741_824.0),
    unit("TB", Measure::Memory, 1e12),
    unit("TiB", Measure::Memory, 1_099_511_627_776.0),
    unit("s", Measure::Time, 1.0),
    unit("ms", Measure::Time, 1e-3),
    unit("µs", Measure::Time, 1e-6),
    unit("%", Measure::Share, 0.01),
    unit("×", Measure::Count, 1.0),
    unit("×10⁶", Measure::Count, 1e6),
    unit("×10⁹", Measure::Count, 1e9),
    unit("万", Measure::Count, 1e4),
    unit("萬", Measure::Count, 1e4),
    unit("亿", Measure::Count, 1e8),
    unit("億", Measure::Count, 1e8),
];

/// Alternative spellings of units, in lower case.
const OTHER_NAMES: [(&str, &str); 25] = [
    ("byte", "B"),
    ("bytes", "B"),
    ("字节", "B"),
    ("位元組", "B"),
    ("k", "KB"),
    ("m", "MB"),
    ("g", "GB"),
    ("t", "TB"),
    ("gigabyte", "GB"),
    ("gigabytes", "GB"),
    ("megabytes", "MB"),
    ("sec", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("秒", "s"),
    ("毫秒", "ms"),
    ("us", "µs"),
    ("微秒", "µs"),
    ("percent", "%"),
    ("x", "×"),
    ("倍", "×"),
    ("token", ""),
    ("tokens", ""),
    ("个", ""),
    ("個", ""),
];

impl Unit {
    /// The unit of counts, which has no symbol.
    pub const COUNT: Self = ALL[0];

    /// The unit with this symbol or alternative spelling; case does not matter.
    ///
    /// ```
    /// use vramscope_course::Unit;
    /// assert_eq!(Unit::named("gib").unwrap().name, "GiB");
    /// assert_eq!(Unit::named("parsec"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let other = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        let name = other.map_or(name, |(_, name)| name);
        ALL.into_iter().find(|unit| unit.name.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_name_stands_for_a_unit() {
        for (other, name) in OTHER_NAMES {
            assert_eq!(Unit::named(other).map(|unit| unit.name), Some(name), "{other}");
        }
    }
}
