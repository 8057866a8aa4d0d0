//! Errors of reading or replaying a recording.

use super::fault::Fault;

/// Least and greatest value of each size that a structure covers. A size is what `--vary` varies, such as `batch` or
/// `seq`.
pub type Ranges = Vec<(String, [u64; 2])>;

/// Error of reading or replaying a recording. Its message names the cause, the line if one is at fault, and where there
/// is one, the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The file is empty, or its first line is not the header of a recording.
    #[error("this is not a recording: its first line is no header; make one with `vramscope record train.py`")]
    NotARecording,
    /// The version of the format is unknown.
    #[error(
        "the recording has format version {0}, and this program reads version 1; update VRAMscope, or record again \
         with the recorder of this version"
    )]
    Version(String),
    /// The file stops before its `end` line.
    #[error(
        "the recording is cut: it stops after line {lines} without its `end`; copy the whole file, or record again"
    )]
    Cut {
        /// Number of lines present.
        lines: u64,
    },
    /// Reading or unpacking failed.
    #[error("the recording cannot be unpacked beyond line {lines} ({why}); copy the whole file, or record again")]
    Unreadable {
        /// Number of lines read before the failure.
        lines: u64,
        /// Message of the operating system or of the decompressor.
        why: String,
    },
    /// The unpacked file exceeds the limit in bytes.
    #[error("the recording unpacks to more than {} MiB, which no training step does; record fewer steps", .most >> 20)]
    TooLarge {
        /// Limit in bytes.
        most: u64,
    },
    /// A line does not follow the format.
    #[error("line {number} of the recording {why}")]
    Line {
        /// Number of the line, from 1.
        number: u64,
        /// The fault, worded as the end of a sentence whose subject is the line.
        why: String,
    },
    /// No step ran from its first to its last operation.
    #[error(
        "the recording holds no whole step; record at least one, to the end of its optimizer's update, or two to see \
         what later ones hold"
    )]
    NoStep,
    /// The recording was made for a card with other kernels.
    #[error(
        "the recording was made for {recorded} (compute capability {}.{}); a card of {}.{} runs other kernels, so \
         record again with `--gpu` and its name",
        .has[0],
        .has[1],
        .asked[0],
        .asked[1]
    )]
    OtherCard {
        /// Card of the recording.
        recorded: String,
        /// Compute capability of that card.
        has: [u32; 2],
        /// Compute capability of the requested card.
        asked: [u32; 2],
    },
    /// The form of the optimizer that has this name (foreach, fused, for-loop) cannot be derived from the recorded one.
    #[error(
        "the {0} form of the optimizer cannot be derived from this recording: forms are derived for AdamW and Adam that \
         update once in each step, the fused one only without a GradScaler; record again with the optimizer in that form"
    )]
    Optimizer(&'static str),
    /// The recording's settings of the allocator or of workspaces are not simulated. Holds the whole message, which
    /// depends on the setting.
    #[error("{0}")]
    Setting(String),
    /// The file is a `.sizes.gz`, which covers all sizes, but a single run was requested.
    #[error("this file tells all sizes, and one run is needed; name the recording of one size, which ends in .vram.gz")]
    AllSizes,
    /// The file is a `.sizes.gz` without a structure: no sequence of operations was found that several sizes share.
    #[error(
        "the file holds no structure that several sizes share; record more sizes with `--vary`, so that one is left \
         to check"
    )]
    NoStructure,
    /// The requested size does not vary.
    #[error("the recording has no size \"{asked}\"; it varies {known}")]
    UnknownSize {
        /// Name of the requested size.
        asked: String,
        /// Names of the sizes that vary.
        known: String,
    },
    /// No single structure is known to be valid at the requested sizes: none covers them, or several do.
    #[error("{} {}: valid is {}; record it with `{command}`", uncovered(*.between), sizes(.asked), ranges(.valid))]
    OutOfRange {
        /// Requested sizes, by name.
        asked: Vec<(String, u64)>,
        /// What each structure covers.
        valid: Vec<Ranges>,
        /// True if several structures cover the requested sizes, so that the right one is unknown.
        between: bool,
        /// Command that records at the requested sizes.
        command: String,
    },
}

impl RecordingError {
    /// Error for the fault of line `number`, counted from 1.
    pub(super) fn at(number: u64, fault: Fault) -> Self {
        Self::Line {
            number,
            why: fault.to_string(),
        }
    }
}

/// Start of the message of [`RecordingError::OutOfRange`], which the requested sizes follow.
const fn uncovered(between: bool) -> &'static str {
    match between {
        true => "steps of two structures were recorded around",
        false => "no recording tells",
    }
}

/// Maximum number of structures whose ranges a message lists, to keep it readable.
const MOST_LISTED: usize = 8;

/// Formats sizes: `batch 2, seq 256`.
fn sizes(sizes: &[(String, u64)]) -> String {
    let words: Vec<String> = sizes.iter().map(|(name, value)| format!("{name} {value}")).collect();
    words.join(", ")
}

/// Formats the ranges of each structure: `batch 2 to 4 and seq 256 to 640`.
fn ranges(structures: &[Ranges]) -> String {
    let of_size = |(name, range): &(String, [u64; 2])| match range {
        [least, most] if least == most => format!("{name} {least}"),
        [least, most] => format!("{name} {least} to {most}"),
    };
    let of_structure = |ranges: &Ranges| ranges.iter().map(of_size).collect::<Vec<_>>().join(" and ");
    let listed: Vec<String> = structures.iter().take(MOST_LISTED).map(of_structure).collect();
    listed.join("; ")
}
