//! Formats plain columns with bold headers.

use anstyle::Style;

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Left-aligned, for text.
    Left,
    /// Right-aligned, for numbers.
    Right,
}

/// Formats rows under their headers, with two blanks between columns.
pub fn render<const N: usize>(heads: [(&str, Edge); N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].0.chars().count()]).max().unwrap_or_default()
    };
    let columns: [(usize, Edge); N] = std::array::from_fn(|i| (width(i), heads[i].1));
    let bold = Style::new().bold();
    let mut out = format!("{bold}{}{bold:#}\n", line(&columns, heads.map(|(head, _)| head)));
    for row in rows {
        out += &line(&columns, row.each_ref().map(String::as_str));
        out.push('\n');
    }
    out
}

fn line<const N: usize>(columns: &[(usize, Edge); N], cells: [&str; N]) -> String {
    let mut out = String::new();
    for (cell, &(width, edge)) in cells.into_iter().zip(columns) {
        out += &match edge {
            Edge::Left => format!("{cell:<width$}  "),
            Edge::Right => format!("{cell:>width$}  "),
        };
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "1"], ["long name", "10"]].map(|row| row.map(String::from));
        let text = render([("name", Edge::Left), ("n", Edge::Right)], &rows);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(text, "name        n\na           1\nlong name  10\n");
    }
}
