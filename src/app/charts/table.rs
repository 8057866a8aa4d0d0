//! Data table behind a chart.

/// Data table behind a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Column names.
    pub head: Vec<String>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Formats the table as CSV (RFC 4180).
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            for (i, cell) in row.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(cell));
            }
            out.push_str("\r\n");
        }
        out
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
