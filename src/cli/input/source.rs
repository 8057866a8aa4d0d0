//! A file, or standard input where `-` is given.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use flate2::bufread::MultiGzDecoder;

use crate::failure::Failure;

/// More bytes than any trace, snapshot or log holds; what unpacks to more is none.
pub const LARGEST: u64 = 4 << 30;

/// Where input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `-`: standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Source {
    /// Takes a command-line value; never fails, as any name may be a file's.
    pub fn parse(text: &str) -> Result<Self, std::convert::Infallible> {
        Ok(match text {
            "-" => Self::Stdin,
            path => Self::File(path.into()),
        })
    }

    /// Opens it for reading, buffered.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn BufRead + Send>, Failure> {
        match self {
            Self::Stdin => Ok(Box::new(BufReader::new(io::stdin()))),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(BufReader::new(file))),
                Err(error) => Err(self.unreadable(&error)),
            },
        }
    }

    /// Opens it for reading what it holds, unpacked where it is gzipped, and says whether it is. It ends at
    /// [`LARGEST`].
    ///
    /// # Errors
    /// When it cannot be opened or its first bytes cannot be read.
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

    /// Bytes of a file; 0 where that is not known.
    pub fn size(&self) -> u64 {
        match self {
            Self::Stdin => 0,
            Self::File(path) => std::fs::metadata(path).map_or(0, |data| data.len()),
        }
    }

    /// Reads all of it as text.
    ///
    /// # Errors
    /// When it cannot be read or is not UTF-8.
    pub fn read_text(&self) -> Result<String, Failure> {
        let mut text = String::new();
        match self.open()?.read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    /// The failure of reading from here.
    pub fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("cannot read {self}: {error}"))
    }
}
