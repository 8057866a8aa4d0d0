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
        let amount = format::gib(self.bytes);
        // A long amount takes a column of the bar, so that the two never touch.
        let columns = AMOUNT.max(amount.len() + 1);
        let cells = width.saturating_sub(LABEL + columns + NOTE + 2);
        let (bar, blanks) = bar(self.bytes, self.of.unwrap_or(Bytes::ZERO), cells);
        let (bar_style, text_style) = (self.bar_style, self.text_style);
        let line = format!(
            "{text_style}{:LABEL$}{text_style:#}{bar_style}{bar}{bar_style:#}{blanks}{text_style}{amount:>columns$}  {}",
            self.label, self.note,
        );
        format!("{}{text_style:#}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_touches_its_amount() {
        let row = |gib: u64| Row {
            label: "  optimizer",
            bytes: Bytes::new(gib << 30),
            of: Some(Bytes::new(gib << 30)),
            note: "",
            bar_style: Style::new(),
            text_style: Style::new(),
        };
        for gib in [1, 1000, 100_000] {
            let text = row(gib).render(80);
            assert!(text.contains(&format!(" {gib}.00 GiB")), "{text}");
            assert_eq!(text.trim_end().chars().count(), 70, "{text}");
        }
    }
}
