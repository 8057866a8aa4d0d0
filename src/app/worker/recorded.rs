//! Messages about recordings between page and worker: the file, its run, or a fault.

use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vramscope_engine::recording::{Ranges, RecordingError};
use vramscope_engine::units::Bytes;
use vramscope_plan::{Effect, Now};

use super::protocol::Answer;
use super::slices::{Kept, Parts};
use super::view::RunView;
use crate::state::{Draft, Key, named_text, named_texts};

/// A recording as it was given, mostly gzip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packed {
    /// Of the page's choosing: another file has another number.
    pub number: u32,
    /// The file.
    pub bytes: Arc<Vec<u8>>,
}

/// The lines of a recording, or why there are none.
pub type Unpacked = Result<Vec<u8>, Fault>;

/// Most bytes of a file that the page takes in: ten times what a 7B model with every optimizer takes.
pub const MOST_PACKED: f64 = 64.0 * (1 << 20) as f64;

/// Most bytes of a recording that the page unpacks: its program has four gibibytes for everything.
pub const MOST_UNPACKED: usize = 1 << 29;

/// A recording that the host keeps, ready to be replayed.
pub trait Replay {
    /// Replays it for a card and an allocator; returns the answer and the run to keep. `first` is true where it is seen
    /// first: then it may be held against the card that it was made for.
    fn play(&self, id: u32, entries: &Draft, first: bool) -> (Answer, Option<Kept>);

    /// Starts single changes of these entries, whose run has the figures in `now`.
    fn changes(self: Rc<Self>, entries: &Draft, now: Now) -> Box<dyn Parts>;

    /// Starts a search for the largest batch.
    fn batches(self: Rc<Self>, entries: &Draft) -> Box<dyn Parts>;
}

/// Answer to a question about a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnswer {
    /// Facts that the recording fixes; `None` if it cannot be read.
    pub facts: Option<Facts>,
    /// Figures that the page shows for any run, or the reason why there are none.
    pub run: Result<RunView, Fault>,
}

/// Single change to a recorded step that needs no other recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Value of a size.
    Size(String, u64),
    /// Segments of the allocator that grow, or not.
    ExpandableSegments(bool),
    /// Form of the optimizer's update.
    OptimizerForm(String),
    /// Another card of the same compute capability.
    Card(String),
}

impl Change {
    /// Applies the change to the page's entries.
    pub fn apply(&self, entries: &mut Draft) {
        match self {
            Self::Size(name, value) => set_size(entries, name, &value.to_string()),
            Self::ExpandableSegments(on) => entries.set(Key::ExpandableSegments, on.to_string()),
            Self::OptimizerForm(form) => entries.set(Key::OptimizerForm, form),
            Self::Card(name) => entries.set(Key::Gpu, name),
        }
    }

    /// Formats the change as an entry with its value, such as `batch=4`.
    pub fn name(&self) -> String {
        match self {
            Self::Size(name, value) => format!("{name}={value}"),
            Self::ExpandableSegments(on) => format!("{}={on}", Key::ExpandableSegments.name()),
            Self::OptimizerForm(form) => format!("{}={form}", Key::OptimizerForm.name()),
            Self::Card(name) => format!("{}={name}", Key::Gpu.name()),
        }
    }
}

/// Sets the text of one size among the page's entries.
pub fn set_size(entries: &mut Draft, name: &str, text: &str) {
    let mut sizes = named_texts(entries.get(Key::Sizes));
    match sizes.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = text.to_owned(),
        None => sizes.push((name.to_owned(), text.to_owned())),
    }
    entries.set(Key::Sizes, named_text(&sizes));
}

/// A single change to a recorded step, after its replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The change.
    pub change: Change,
    /// Effect on the memory, or the reason why there is none.
    pub effect: Result<Effect, Fault>,
    /// Bytes needed of those that the card has, if it is known.
    pub fit: Option<[Bytes; 2]>,
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
    /// Steps that ran to their end, and operations of the whole recording; `None` until it was replayed.
    pub ran: Option<(usize, u64)>,
    /// Libraries and their versions.
    pub versions: Vec<(String, String)>,
    /// The script and its arguments; empty where a program recorded itself.
    pub command: String,
    /// Number of this process, and of all.
    pub rank: [u64; 2],
    /// True if its allocator had `expandable_segments`.
    pub expandable_segments: bool,
    /// Forms of the optimizer's update that can be chosen, the recorded one first; empty until the recording was
    /// replayed, and where none can be derived.
    pub optimizer_forms: Vec<String>,
    /// Sizes that can be chosen.
    pub sizes: Vec<Size>,
}

/// Size of a recorded step that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Its name.
    pub name: String,
    /// Value where none is chosen: that of the first recording.
    pub first: u64,
    /// Recorded values, in ascending order.
    pub recorded: Vec<u64>,
    /// True if values between recorded ones can be chosen too.
    pub between: bool,
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
    /// No recorded structure is valid at the chosen sizes.
    OutOfRange {
        /// Chosen sizes, by name.
        asked: Vec<(String, u64)>,
        /// Least and greatest value of each size, for each structure.
        valid: Vec<Ranges>,
        /// True if two structures surround the sizes.
        between: bool,
        /// Command that records at these sizes.
        command: String,
    },
    /// The recording has no size of this name, but these.
    UnknownSize(String, String),
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
            E::UnknownSize { asked, known } => Self::UnknownSize(asked, known),
            E::OutOfRange {
                asked,
                valid,
                between,
                command,
            } => Self::OutOfRange {
                asked,
                valid,
                between,
                command,
            },
            E::Setting(_) | E::Optimizer(_) | E::AllSizes | E::NoStructure => Self::Engine(words),
        }
    }
}
