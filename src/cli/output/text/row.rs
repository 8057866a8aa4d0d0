//! One line of a chart: label, bar, amount, note.

use anstyle::Style;
use vramscope_engine::format;
use vramscope_engine::units::Bytes;

use super::bar::bar;

/// Columns of a label and of an amount; the bar takes what the two and a note of
/// [`NOTE`] columns leave.
const LABEL: usize = 22;
const AMOUNT: usize = 11;
const NOTE: usize = 8;

/// One line of a chart.
pub struct Row<'a> {
    /// What the amount is of; indented as it comes.
    pub label: &'a str,
    /// The amount.
    pub bytes: Bytes,
    /// Length of the bar as the part of this; no bar where it is absent.
    pub of: Option<Bytes>,
    /// What stands behind the amount.
    pub note: &'a str,
    /// Style of the bar.
    pub bar_style: Style,
    /// Style of the words.
    pub text_style: Style,
}

impl Row<'_> {
    /// The line, with its end, for a terminal this wide.
    pub fn render(&self, width: usize) -> String {
        let cells = width.saturating_sub(LABEL + AMOUNT + NOTE + 2);
        let (bar, blanks) = bar(self.bytes, self.of.unwrap_or(Bytes::ZERO), cells);
        let (bar_style, text_style) = (self.bar_style, self.text_style);
        let amount = format::gib(self.bytes);
        let line = format!(
            "{text_style}{:LABEL$}{text_style:#}{bar_style}{bar}{bar_style:#}{blanks}{text_style}{amount:>AMOUNT$}  {}",
            self.label, self.note,
        );
        format!("{}{text_style:#}\n", line.trim_end())
    }
}
