//! Formats one row of a bar chart: label, bar, amount, note.

use anstyle::Style;
use vramscope_engine::format;
use vramscope_engine::units::Bytes;

use super::bar::bar;

/// Columns of a label and of an amount; the bar takes the columns that these and a note of [`NOTE`] columns leave.
const LABEL: usize = 22;
const AMOUNT: usize = 11;
const NOTE: usize = 8;

/// One row of a bar chart.
pub struct Row<'a> {
    /// Label, including its indentation.
    pub label: &'a str,
    /// Amount in bytes.
    pub bytes: Bytes,
    /// Amount that fills the bar; `None` for no bar.
    pub of: Option<Bytes>,
    /// Note after the amount.
    pub note: &'a str,
    /// Style of the bar.
    pub bar_style: Style,
    /// Style of the text.
    pub text_style: Style,
}

impl Row<'_> {
    /// Formats the row, including the line break, for a terminal of this width.
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
