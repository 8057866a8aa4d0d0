//! Keeps of a log of any length what a diagnosis needs: its beginning (command, versions), its end (the error), and from
//! between the lines that have a word of a kind of evidence. Memory stays bounded, and lines keep their numbers.

use std::collections::VecDeque;

use crate::sign::has_word;

/// Bytes kept of the beginning.
const HEAD: usize = 4 << 20;
/// Bytes kept of the end.
const TAIL: usize = 48 << 20;
/// Bytes kept from between.
const MIDDLE: usize = 8 << 20;
/// Bytes that are taken in and let go of at once.
const BLOCK: usize = 1 << 20;

/// Lines of a text that follow each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Number of the first line, from 1.
    pub first_line: usize,
    /// The lines.
    pub bytes: Vec<u8>,
}

/// An excerpt of a text that is fed to it piece by piece.
#[derive(Debug, Default)]
pub struct Excerpt {
    head: Part,
    middle: Vec<Part>,
    tail: VecDeque<Part>,
    /// Bytes in `tail` and in `middle`.
    held: usize,
    between: usize,
    /// True if blocks were let go of.
    is_cut: bool,
    /// Line breaks seen.
    breaks: usize,
}

impl Excerpt {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(BLOCK) {
            self.take(block);
        }
    }

    fn take(&mut self, block: &[u8]) {
        let first_line = self.breaks + 1;
        self.breaks += block.iter().filter(|&&b| b == b'\n').count();
        if self.tail.is_empty() && self.head.bytes.len() < HEAD {
            self.head.first_line = 1;
            self.head.bytes.extend_from_slice(block);
            return;
        }
        match self.tail.back_mut() {
            Some(last) if last.bytes.len() + block.len() <= BLOCK => last.bytes.extend_from_slice(block),
            _ => self.tail.push_back(Part {
                first_line,
                bytes: block.to_vec(),
            }),
        }
        self.held += block.len();
        while self.held > TAIL {
            let Some(part) = self.tail.pop_front() else { break };
            self.held -= part.bytes.len();
            self.is_cut = true;
            self.keep(&part);
        }
    }

    /// Keeps the lines of a block that have a word of a kind of evidence.
    fn keep(&mut self, part: &Part) {
        for (i, line) in part.bytes.split(|&b| b == b'\n').enumerate() {
            if self.between + line.len() > MIDDLE {
                return;
            }
            if has_word(line) {
                self.between += line.len() + 1;
                self.middle.push(Part {
                    first_line: part.first_line + i,
                    bytes: line.to_vec(),
                });
            }
        }
    }

    /// The parts that were kept, in order.
    pub fn finish(self) -> Vec<Part> {
        let mut parts = vec![self.head];
        // Blocks end anywhere: those that follow each other are one part.
        let mut tail: Option<Part> = None;
        for part in self.tail {
            match &mut tail {
                Some(whole) => whole.bytes.extend(part.bytes),
                None => tail = Some(part),
            }
        }
        match tail {
            Some(tail) if !self.is_cut => parts[0].bytes.extend(tail.bytes),
            Some(tail) => {
                parts.extend(self.middle);
                parts.push(tail);
            }
            None => {}
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_ends_and_what_matters_between() {
        let mut excerpt = Excerpt::default();
        excerpt.feed(b"swift sft --max_length 2048\n");
        let filler = "nothing to see here\n".repeat(60_000);
        for i in 0..60 {
            if i == 5 {
                excerpt.feed(b"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED\n");
            }
            excerpt.feed(filler.as_bytes());
        }
        excerpt.feed(b"the end\n");
        let parts = excerpt.finish();
        let all: usize = parts.iter().map(|part| part.bytes.len()).sum();
        assert!(all < HEAD + TAIL + MIDDLE + 2 * BLOCK, "{all}");
        let between = parts
            .iter()
            .find(|part| part.bytes.starts_with(b"RuntimeError"))
            .expect("kept");
        assert_eq!(between.first_line, 2 + 5 * 60_000);
        assert!(parts[0].bytes.starts_with(b"swift") && parts.last().expect("some").bytes.ends_with(b"the end\n"));
    }

    #[test]
    fn a_short_text_stays_whole() {
        let mut excerpt = Excerpt::default();
        excerpt.feed(b"one\ntwo");
        assert_eq!(
            excerpt.finish(),
            [Part {
                first_line: 1,
                bytes: b"one\ntwo".to_vec()
            }]
        );
        let mut excerpt = Excerpt::default();
        let text = "line\n".repeat(2 << 20);
        excerpt.feed(text.as_bytes());
        let parts = excerpt.finish();
        assert_eq!((parts.len(), parts[0].bytes.len()), (1, text.len()));
    }
}
