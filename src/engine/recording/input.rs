//! Lines of a recording, each of bounded length.

use std::io::{BufRead, Read, Take};

use super::error::RecordingError;
use super::fault::Fault;
use super::header::Header;
use super::limits::MOST_LINE;

/// Reader of the lines of an input of limited size.
pub(super) struct Lines<R> {
    input: Take<R>,
    most: u64,
    /// Number of the last line that was read, from 1.
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads at most `most` bytes of the input.
    pub fn new(input: R, most: u64) -> Self {
        Self {
            input: input.take(most + 1),
            most,
            number: 0,
            line: Vec::new(),
        }
    }

    /// Limits the rest of the input to `most` bytes.
    pub fn at_most(mut self, most: u64) -> Self {
        self.most = most.min(self.most);
        self.input.set_limit(most.min(self.input.limit()));
        self
    }

    /// Returns the number of the last line that was read, from 1.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Reads the header, which is the first line.
    pub fn header(&mut self) -> Result<Header, RecordingError> {
        match self.next()? {
            Some(first) => Header::read(first),
            None => Err(RecordingError::NotARecording),
        }
    }

    /// Checks that only whitespace follows.
    pub fn end(&mut self) -> Result<(), RecordingError> {
        match self.next()?.is_some_and(|line| !line.trim().is_empty()) {
            true => Err(RecordingError::at(self.number, Fault::SourceLine)),
            false => Ok(()),
        }
    }

    /// Reads the next line without its line break; returns `None` after the last.
    pub fn next(&mut self) -> Result<Option<&str>, RecordingError> {
        self.line.clear();
        let read = (&mut self.input).take(MOST_LINE).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| RecordingError::Unreadable {
            lines: self.number,
            why: error.to_string(),
        })?;
        if self.input.limit() == 0 {
            return Err(RecordingError::TooLarge { most: self.most });
        }
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let first = self.number == 1;
        if read as u64 == MOST_LINE && self.line.last() != Some(&b'\n') {
            return Err(match first {
                true => RecordingError::NotARecording,
                false => RecordingError::at(self.number, Fault::TooMuch("bytes")),
            });
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(_) if first => Err(RecordingError::NotARecording),
            Err(_) => Err(RecordingError::at(self.number, Fault::Json("it is not UTF-8".into()))),
        }
    }
}
