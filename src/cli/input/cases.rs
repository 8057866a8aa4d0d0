//! Reads a file of cases, one JSON object per line, as a stream.

use std::io::BufRead;
use std::sync::Arc;

use vramscope_engine::Case;

use super::hub::Names;
use super::source::Source;
use super::subject::states_seq;
use crate::failure::Failure;

/// One case of a file, or an error for its line.
pub struct Row {
    /// Number of cases before this one.
    pub index: usize,
    /// The case; for a malformed line, what is wrong with it.
    pub case: Result<Case, String>,
}

/// The rows of a file in order. Blank lines and lines without a case (such as a first line that describes the machine
/// of the measurements) are skipped.
pub struct Cases {
    source: Source,
    input: Box<dyn BufRead + Send>,
    names: Arc<Names>,
    next_index: usize,
}

impl Cases {
    /// Opens a file of cases, whose models are found by `names`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(source: Source, names: Arc<Names>) -> Result<Self, Failure> {
        let input = source.open()?;
        Ok(Self {
            source,
            input,
            names,
            next_index: 0,
        })
    }

    fn read_line(&mut self) -> Option<Result<Vec<u8>, Failure>> {
        let mut line = Vec::new();
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(line)),
            Err(error) => Some(Err(self.source.unreadable(&error))),
        }
    }
}

impl Iterator for Cases {
    type Item = Result<Row, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.read_line()? {
                Ok(line) => line,
                Err(failure) => return Some(Err(failure)),
            };
            if let Some(given) = parse(&line) {
                let index = self.next_index;
                self.next_index += 1;
                let case = given.map(|Parsed { mut case, states_seq }| {
                    self.names.fill_length(&mut case, states_seq);
                    case
                });
                return Some(Ok(Row { index, case }));
            }
        }
    }
}

/// A case as its line gives it.
struct Parsed {
    case: Case,
    /// True if it states its length; else it takes its model's default.
    states_seq: bool,
}

/// Reads a line: a case, or what is wrong with it; `None` for a line without a case.
fn parse(line: &[u8]) -> Option<Result<Parsed, String>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let case = str::from_utf8(line)
        .map_err(|error| format!("not UTF-8: {error}"))
        .and_then(|text| {
            let case = Case::from_json(text).map_err(|error| error.to_string())?;
            Ok(case.map(|case| Parsed {
                case,
                states_seq: states_seq(text),
            }))
        });
    case.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_lines_without_a_case_are_no_rows() {
        for line in ["", "  \r\n", r#"{"env": {"torch": "2.11.0"}}"#] {
            assert!(parse(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn a_malformed_line_is_a_row_that_says_so() {
        for line in [&b"{\"model\": "[..], b"[1]", b"\xff\xfe", b"{\"case\": 3}"] {
            assert!(matches!(parse(line), Some(Err(message)) if !message.is_empty()));
        }
    }
}
