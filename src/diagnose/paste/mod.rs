//! A text as people paste it, made plain: encodings, colours, progress bars, boxes and prefixes of ranks are gone, and each
//! line still knows its number in the file and how it was written.

mod clean;
mod decode;
mod quoted;
mod secrets;

pub use decode::decode;
pub use quoted::{is_quoted, may_quote};
pub use secrets::masked;

/// Longest quotation of a line in bytes.
const LONGEST_QUOTE: usize = 400;

/// A text without what terminals and launchers add to it.
#[derive(Debug)]
pub struct Paste<'a> {
    raw: Vec<&'a str>,
    numbers: Vec<usize>,
    /// The plain lines, joined by line breaks.
    pub text: String,
    starts: Vec<usize>,
}

impl<'a> Paste<'a> {
    /// Makes a text plain.
    #[cfg(test)]
    pub fn of(raw: &'a str) -> Self {
        Self::of_parts([(1, raw)])
    }

    /// Makes the parts of a text plain, each with the number of its first line.
    pub fn of_parts(parts: impl IntoIterator<Item = (usize, &'a str)>) -> Self {
        let mut paste = Self {
            raw: Vec::new(),
            numbers: Vec::new(),
            text: String::new(),
            starts: Vec::new(),
        };
        for (first, raw) in parts {
            paste.text.reserve(raw.len());
            for (i, line) in raw.split('\n').enumerate() {
                let line = line.strip_suffix('\r').unwrap_or(line);
                // A progress bar overwrites its line: each state of it is a line of its own.
                for part in line.split('\r') {
                    paste.starts.push(paste.text.len());
                    paste.raw.push(part);
                    paste.numbers.push(first + i);
                    clean::push(part, &mut paste.text);
                    paste.text.push('\n');
                }
            }
        }
        paste
    }

    /// Number of plain lines.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Number of lines of the file.
    pub fn line_count(&self) -> usize {
        self.numbers.last().copied().unwrap_or_default()
    }

    /// Index of the plain line that holds byte `at` of the text.
    pub fn index(&self, at: usize) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    /// A plain line.
    pub fn line(&self, index: usize) -> &str {
        let Some(&start) = self.starts.get(index) else {
            return "";
        };
        let end = self.starts.get(index + 1).map_or(self.text.len(), |&end| end);
        self.text[start..end].trim_end_matches('\n')
    }

    /// Byte at which a plain line begins.
    pub fn start(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.len())
    }

    /// Number of a line in the file, from 1.
    pub fn number(&self, index: usize) -> usize {
        self.numbers.get(index).copied().unwrap_or_default()
    }

    /// The line as it was written, without colours and with secrets masked, cut if it is long.
    pub fn quote(&self, index: usize) -> String {
        let raw = self.raw.get(index).copied().unwrap_or_default();
        let plain = clean::without_escapes(raw);
        let plain = plain.trim();
        let cut = crate::text::window(plain, 0, LONGEST_QUOTE);
        let mut quote = masked(cut);
        if cut.len() < plain.len() {
            quote.push('…');
        }
        quote
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_and_lose_what_terminals_add() {
        let paste = Paste::of(
            "\u{1b}[31m[rank1]: first\u{1b}[0m\r\n 10%|#\r 20%|##\n│ boxed text      │\n(WorkerDict pid=12, ip=10.0.0.1) said",
        );
        let lines: Vec<&str> = (0..paste.len()).map(|i| paste.line(i)).collect();
        assert_eq!(lines, ["first", " 10%|#", " 20%|##", " boxed text", "said"]);
        assert_eq!((paste.number(1), paste.number(2), paste.number(4)), (2, 2, 4));
        assert_eq!(paste.quote(0), "[rank1]: first");
        assert_eq!(paste.index(paste.start(3) + 2), 3);
    }
}
