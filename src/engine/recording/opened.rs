//! Opens whatever the recorder writes.

use std::io::BufRead;

use super::error::RecordingError;
use super::header::Format;
use super::input::Lines;
use super::limits::{MOST_BYTES, MOST_SIZES_BYTES};
use super::run::Run;
use super::sizes::Sizes;
use super::{reader, sizes};
use crate::tape::Gpu;

/// Content of a file that the recorder wrote.
pub enum Opened {
    /// The steps of one run.
    Run(Box<Run>),
    /// Those of all sizes.
    Sizes(Box<Sizes>),
}

/// Reads a file of the recorder that is unpacked, a run as it runs on `gpu`; on the card that it was made for, where none
/// is given.
///
/// # Errors
/// As [`read`](super::read).
pub fn open(input: impl BufRead, gpu: Option<Gpu>) -> Result<Opened, RecordingError> {
    let mut lines = Lines::new(input, MOST_BYTES);
    let header = lines.header()?;
    Ok(match header.format()? {
        Format::Recording => Opened::Run(Box::new(reader::read_rest(lines, header, gpu)?)),
        Format::Sizes => Opened::Sizes(Box::new(sizes::read_rest(lines.at_most(MOST_SIZES_BYTES), header)?)),
    })
}
