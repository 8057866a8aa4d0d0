//! Messages about recordings between page and worker: the file, its run, or a fault.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use vramscope_engine::recording::RecordingError;

use super::view::Run;

/// A recording as it was given, mostly gzip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Of the page's choosing: another file has another number.
    pub number: u32,
    /// The file.
    pub bytes: Rc<Vec<u8>>,
}

/// The lines of a recording, or why there are none.
pub type Unpacked = Result<Vec<u8>, Fault>;

/// Most bytes of a file that the page takes in: ten times what a 7B model with every optimizer takes.
pub const MOST_PACKED: f64 = 64.0 * (1 << 20) as f64;

/// Most bytes of a recording that the page unpacks: its program has four gibibytes for everything.
pub const MOST_UNPACKED: usize = 1 << 29;

/// A recorded run held against a card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedRun {
    /// Figures that the page shows for any run.
    pub run: Run,
    /// Facts that the recording fixes.
    pub facts: Facts,
}

/// Facts that a recording states about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The class of the model; empty where no module ran.
    pub model: String,
    /// The card that was emulated, as its driver names it.
    pub card: String,
    /// Compute capability of that card.
    pub capability: [u32; 2],
    /// The catalogue's name of that card, if it has one.
    pub known_card: Option<String>,
    /// Steps that ran to their end.
    pub steps: usize,
    /// Operations of the whole recording.
    pub operations: u64,
    /// Libraries and their versions.
    pub versions: Vec<(String, String)>,
    /// The script and its arguments; empty where a program recorded itself.
    pub command: String,
    /// Number of this process, and of all.
    pub rank: [u64; 2],
    /// True if its allocator had `expandable_segments`.
    pub expandable_segments: bool,
}

/// Reason why a recording cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The file is not a recording.
    NotARecording,
    /// It has this version of the format.
    Version(String),
    /// It stops after so many lines.
    Cut(u64),
    /// It is larger than so many MiB.
    TooLarge(u64),
    /// A line is not as the format says; the engine's words.
    Line(String),
    /// No step ran to its end.
    NoStep,
    /// It was made for a card of this capability.
    OtherCard(String, [u32; 2]),
    /// A setting of the allocator is not simulated, or the file covers several sizes; the engine's words.
    Engine(String),
    /// It cannot be fetched from this address.
    Unreachable(String),
    /// The gallery has none of this name.
    Unknown(String),
}

impl From<RecordingError> for Fault {
    fn from(error: RecordingError) -> Self {
        use RecordingError as E;
        let words = error.to_string();
        match error {
            E::NotARecording => Self::NotARecording,
            E::Version(version) => Self::Version(version),
            E::Cut { lines } | E::Unreadable { lines, .. } => Self::Cut(lines),
            E::TooLarge { most } => Self::TooLarge(most >> 20),
            E::Line { .. } => Self::Line(words),
            E::NoStep => Self::NoStep,
            E::OtherCard { recorded, has, .. } => Self::OtherCard(recorded, has),
            // Sizes are chosen in a terminal; the engine's words say so.
            E::Setting(_) | E::AllSizes | E::NoStructure | E::UnknownSize { .. } | E::OutOfRange { .. } => {
                Self::Engine(words)
            }
        }
    }
}
