//! Amounts as each language writes them: units of counts, and plurals.

use vramscope_engine::format;

use crate::i18n::{Locale, Words, t_string};

/// A count in short, with three significant digits: `7.06 B`, `70.6 亿`, as `Intl.NumberFormat` has
/// it in compact notation. Chinese counts in ten thousands.
pub fn count(i18n: Words, n: u64) -> String {
    let units = match i18n.get_locale() {
        Locale::en => return format::count(n),
        Locale::zh_CN => [("亿", 1e8), ("万", 1e4)],
        Locale::zh_TW => [("億", 1e8), ("萬", 1e4)],
    };
    // The largest unit in which the rounded figure is at least one.
    let Some((unit, size)) = units.into_iter().find(|(_, size)| n as f64 >= size * 0.9995) else {
        return format::grouped(n);
    };
    let value = n as f64 / size;
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// `1 tensor`, `12 tensors`.
pub fn tensors(i18n: Words, n: usize) -> String {
    match n {
        1 => t_string!(i18n, amount.one_tensor).to_string(),
        n => t_string!(i18n, amount.tensors, n = format::grouped(n as u64)).to_string(),
    }
}
