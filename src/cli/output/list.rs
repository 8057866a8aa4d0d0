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
    lines(&heads, &rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

fn lines(heads: &[(&str, Edge)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].0.chars().count()]).max().unwrap_or_default()
    };
    let columns: Vec<(usize, Edge)> = (0..heads.len()).map(|i| (width(i), heads[i].1)).collect();
    let bold = Style::new().bold();
    let titles: Vec<String> = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
    let mut out = format!("{bold}{}{bold:#}\n", line(&columns, &titles));
    for row in rows {
        out += &line(&columns, row);
        out.push('\n');
    }
    out
}

/// Formats rows as [`render`] does, without the columns in which every row is empty; nothing without rows.
pub fn render_known<const N: usize>(heads: [(&str, Edge); N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let known: Vec<usize> = (0..N)
        .filter(|column| rows.iter().any(|row| !row[*column].is_empty()))
        .collect();
    let heads: Vec<_> = known.iter().map(|column| heads[*column]).collect();
    let cells = rows
        .iter()
        .map(|row| known.iter().map(|column| row[*column].clone()).collect());
    lines(&heads, &cells.collect::<Vec<_>>())
}

fn line(columns: &[(usize, Edge)], cells: &[String]) -> String {
    let mut out = String::new();
    for (cell, &(width, edge)) in cells.iter().zip(columns) {
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
