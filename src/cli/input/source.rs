//! An input source: a file, or standard input for `-`.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::OnceLock;

use flate2::bufread::MultiGzDecoder;

use crate::failure::Failure;

/// Largest input in bytes after decompression; no trace, snapshot or log is larger.
pub const LARGEST: u64 = 4 << 30;

/// Text that standard input held: it comes once, and a launch is read again for its dataset, or at another number of GPUs.
static STDIN: OnceLock<String> = OnceLock::new();

/// Source of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `-`: standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// What was given on the command line itself: a command, without a file.
    Command(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
            Self::Command(_) => f.write_str("the command"),
        }
    }
}

impl Source {
    /// Parses a command-line value; never fails, since any name may be a file's.
    pub fn parse(text: &str) -> Result<Self, std::convert::Infallible> {
        Ok(match text {
            "-" => Self::Stdin,
            path => Self::File(path.into()),
        })
    }

    /// Opens the source for buffered reading.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn BufRead + Send>, Failure> {
        match self {
            Self::Stdin => Ok(Box::new(BufReader::new(io::stdin()))),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(BufReader::new(file))),
                Err(error) => Err(self.unreadable(&error)),
            },
            Self::Command(text) => Ok(Box::new(io::Cursor::new(text.clone()))),
        }
    }

    /// Opens the source and decompresses gzip; also returns true if it is compressed. The data end at [`LARGEST`]
    /// bytes.
    ///
    /// # Errors
    /// If the source cannot be opened, or its first bytes cannot be read.
    pub fn unpacked(&self) -> Result<(io::Take<Box<dyn Read>>, bool), Failure> {
        let mut input = self.open()?;
        let begin = input.fill_buf().map_err(|error| self.unreadable(&error))?;
        let gzipped = begin.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn Read> = if gzipped {
            Box::new(MultiGzDecoder::new(input))
        } else {
            Box::new(input)
        };
        Ok((input.take(LARGEST), gzipped))
    }

    /// Size of the file in bytes; 0 if it is unknown.
    pub fn size(&self) -> u64 {
        match self {
            Self::Stdin => 0,
            Self::File(path) => std::fs::metadata(path).map_or(0, |data| data.len()),
            Self::Command(text) => text.len() as u64,
        }
    }

    /// Reads the whole source as text.
    ///
    /// # Errors
    /// If it cannot be read or is not UTF-8.
    pub fn read_text(&self) -> Result<String, Failure> {
        if let (Self::Stdin, Some(text)) = (self, STDIN.get()) {
            return Ok(text.clone());
        }
        let mut text = String::new();
        match self.open()?.read_to_string(&mut text) {
            Ok(_) if *self == Self::Stdin => Ok(STDIN.get_or_init(|| text).clone()),
            Ok(_) => Ok(text),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// The failure for an error of reading this source.
    pub fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("cannot read {self}: {error}"))
    }
}
