//! Formats amounts for each language: units of counts, and plurals.

use vramscope_engine::format;

use crate::i18n::{Words, t_string};

/// Formats a count with three significant digits, `7.06 B` or `70.6 亿`, like `Intl.NumberFormat` in compact notation.
/// Chinese has units of ten thousand.
pub fn count(i18n: Words, n: u64) -> String {
    match i18n.locale().units() {
        [] => format::count(n),
        units => format::scaled(n, units).unwrap_or_else(|| format::grouped(n)),
    }
}

/// Formats a number of tensors: `1 tensor`, `12 tensors`.
pub fn tensors(i18n: Words, n: usize) -> String {
    match n {
        1 => t_string!(i18n, amount.one_tensor).to_string(),
        n => t_string!(i18n, amount.tensors, n = format::grouped(n as u64)).to_string(),
    }
}
