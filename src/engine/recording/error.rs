//! Errors of reading and replaying a recording.

use std::fmt;

use super::fault::Fault;

/// Reason why a recording cannot be replayed: the fault, its place, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingError {
    /// It is empty or not gzipped JSON lines at all.
    NotARecording,
    /// Its format has a version that is not known.
    Version(String),
    /// It does not end with `end`.
    Cut {
        /// Lines that are there.
        lines: u64,
    },
    /// Reading or unpacking stopped.
    Unreadable {
        /// Lines that were read before.
        lines: u64,
        /// The system's message.
        why: String,
    },
    /// It unpacks to more bytes than are read.
    TooLarge {
        /// The most that is read.
        most: u64,
    },
    /// A line is not as the format says.
    Line {
        /// Its number, from 1.
        number: u64,
        /// Fault of the line.
        why: String,
    },
    /// No step ran from its first to its last operation.
    NoStep,
    /// It was made for a card whose kernels differ.
    OtherCard {
        /// The card that it was made for.
        recorded: String,
        /// Its compute capability.
        has: [u32; 2],
        /// That of the card that was asked for.
        asked: [u32; 2],
    },
    /// A setting of the allocator cannot be followed.
    Setting(String),
    /// It tells all sizes where one run is asked for.
    AllSizes,
    /// It tells all sizes, but no structure.
    NoStructure,
    /// A size that does not vary was asked for.
    UnknownSize {
        /// Its name.
        asked: String,
        /// Names of those that vary.
        known: String,
    },
    /// No recorded structure holds at the sizes that were asked for.
    OutOfRange {
        /// The sizes.
        asked: String,
        /// Sizes at which structures hold.
        valid: String,
        /// Two structures lie around the sizes.
        between: bool,
        /// Command that records at these sizes.
        command: String,
    },
}

impl RecordingError {
    pub(super) fn at(number: u64, fault: Fault) -> Self {
        Self::Line {
            number,
            why: fault.to_string(),
        }
    }
}

impl std::error::Error for RecordingError {}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecording => f.write_str(
                "this is not a recording: its first line is no header; make one with `vramscope record train.py`",
            ),
            Self::Version(version) => write!(
                f,
                "the recording has format version {version}, and this program reads version 1; update VRAMscope, or record \
                 again with the recorder of this version"
            ),
            Self::Cut { lines } => write!(
                f,
                "the recording is cut: it stops after line {lines} without its `end`; copy the whole file, or record again"
            ),
            Self::Unreadable { lines, why } => write!(
                f,
                "the recording cannot be unpacked beyond line {lines} ({why}); copy the whole file, or record again"
            ),
            Self::TooLarge { most } => write!(
                f,
                "the recording unpacks to more than {} MiB, which no training step does; record fewer steps",
                most >> 20
            ),
            Self::Line { number, why } => write!(f, "line {number} of the recording {why}"),
            Self::NoStep => f.write_str(
                "the recording holds no whole step; record at least one, to the end of its optimizer's update, or two to \
                 see what later ones hold",
            ),
            Self::OtherCard { recorded, has, asked } => write!(
                f,
                "the recording was made for {recorded} (compute capability {}.{}); a card of {}.{} runs other kernels, so \
                 record again with `--gpu` and its name",
                has[0], has[1], asked[0], asked[1]
            ),
            Self::Setting(why) => f.write_str(why),
            Self::AllSizes => f.write_str(
                "this file tells all sizes, and one run is needed; name the recording of one size, which ends in .vram.gz",
            ),
            Self::NoStructure => f.write_str(
                "the file holds no structure that several sizes share; record more sizes with `--vary`, so that one is left \
                 to check",
            ),
            Self::UnknownSize { asked, known } => {
                write!(f, "the recording has no size \"{asked}\"; it varies {known}")
            }
            Self::OutOfRange {
                asked,
                valid,
                between,
                command,
            } => {
                let why = match between {
                    true => "steps of two structures were recorded around",
                    false => "no recording tells",
                };
                write!(f, "{why} {asked}: valid is {valid}; record it with `{command}`")
            }
        }
    }
}
