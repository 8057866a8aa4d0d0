//! Opens files of the recorder: one run, or all sizes.

use std::io::BufRead;

use super::error::RecordingError;
use super::header::Format;
use super::input::Lines;
use super::limits::{MOST_BYTES, MOST_SIZES_BYTES};
use super::run::RecordedRun;
use super::sizes::Sizes;
use super::{reader, sizes};
use crate::tape::Gpu;

/// Content of a recorder's file.
pub enum Opened {
    /// The steps of one run.
    Run(Box<RecordedRun>),
    /// Steps at all sizes.
    Sizes(Box<Sizes>),
}

/// Reads an unpacked file of the recorder. A run is read for `gpu`, or for the card that it was made for if there is
/// none.
///
/// # Errors
/// Fails like [`read`](super::read).
pub fn open(input: impl BufRead, gpu: Option<Gpu>) -> Result<Opened, RecordingError> {
    let mut lines = Lines::new(input, MOST_BYTES);
    let header = lines.header()?;
    Ok(match header.format()? {
        Format::Recording => Opened::Run(Box::new(reader::read_rest(lines, header, gpu)?)),
        Format::Sizes => Opened::Sizes(Box::new(sizes::read_rest(lines.at_most(MOST_SIZES_BYTES), header)?)),
    })
}
