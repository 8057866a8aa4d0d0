//! What the page asks and what it is answered. The two sides are one program, so nothing here has
//! a version.

use serde::{Deserialize, Serialize};
pub use vramscope_engine::plan::Refusal;
use vramscope_engine::plan::{Needed, Now, Point, Tried};
use vramscope_engine::report::Instant;
use vramscope_engine::report::derivation::{Derivation, Quantity};

use super::batches::LargestBatch;
use super::coded::Coded;
use super::export::Export;
use super::recorded::{Fault, Packed, RecordedRun};
use super::timing::{NoTime, Timing};
use super::view::{Details, Live, Run, Summary};
use crate::state::Draft;

/// What a question is for. A newer one of the same slot takes the place of the older, whose answers
/// are never seen. Slots come in the order of urgency: the host works on the first that has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Slot {
    /// The run of the page.
    Run,
    /// What of that run is drawn after its figures.
    Details,
    /// The list beside the timeline.
    Instant,
    /// How a number comes about.
    Derivation,
    /// A file of the run.
    Export,
    /// Runs of what the entry that somebody is about to change may become.
    Near,
    /// Where the time of the run's step goes.
    Time,
    /// The setups side by side.
    Setups,
    /// Single changes.
    WhatIf,
    /// The curves of the attention page.
    Attention,
    /// The largest micro-batch of the plan page.
    Batches,
    /// The sweep of the plan page.
    Sweep,
    /// The search of the page of recommendations.
    Plan,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// The run of these entries: [`Answer::Run`]. The host keeps its tensors for the questions below.
    Run(Draft),
    /// What a recording takes: [`Answer::Recorded`]. The host keeps its tensors for the questions below.
    Recorded {
        /// The recording.
        file: Packed,
        /// Card and allocator.
        entries: Draft,
        /// True where it is seen first: then it may be held against the card that it was made for.
        first: bool,
    },
    /// The answer to a recording that the host still keeps, as the command line's `--format json` has it:
    /// [`Answer::File`]; else no answer.
    RecordedJson {
        /// [`Run::id`].
        run: u32,
    },
    /// The details of a run that the host still keeps: [`Answer::Details`]; else no answer.
    Details {
        /// [`Run::id`].
        run: u32,
    },
    /// What lives at an instant of a run that the host still keeps: [`Answer::Live`]; else no answer.
    Live {
        /// [`Run::id`].
        run: u32,
        /// When.
        instant: Instant,
    },
    /// A run that the host still keeps as a file: [`Answer::File`]; else no answer.
    Export {
        /// [`Run::id`].
        run: u32,
        /// Which file.
        file: Export,
        /// What the time in it depends on beside the setup.
        entries: TimeEntries,
    },
    /// Where the time of a step of a run that the host still keeps goes: [`Answer::Time`] as soon as it is known,
    /// and again with what it waits for; else no answer.
    Time {
        /// [`Run::id`].
        run: u32,
        /// What it depends on beside the setup.
        entries: TimeEntries,
    },
    /// Figures of each of these setups, in order: as many [`Answer::Setup`].
    Setups(Vec<Draft>),
    /// The run of each of these entries, in order: as many [`Answer::Near`].
    Near(Vec<Draft>),
    /// What single changes do: an [`Answer::Tried`] for each.
    WhatIf {
        /// What is changed.
        entries: Draft,
        /// The figures of its run.
        now: Now,
    },
    /// How a number of a run that the host still keeps comes about: [`Answer::Derivation`]; else no
    /// answer.
    Derive {
        /// [`Run::id`].
        run: u32,
        /// The entries of the run beside it that the number is also about.
        changed: Option<Draft>,
        /// Which number.
        quantity: Coded<Quantity>,
    },
    /// The curves of these entries' attention: an [`Answer::Attention`] for each algorithm.
    Attention(Draft),
    /// A sweep of these entries: an [`Answer::Point`] for each value, then an [`Answer::Largest`] for each
    /// card.
    Sweep(Draft),
    /// The largest micro-batch of these entries that trains: an [`Answer::Batches`] again and again, until it is found.
    Batches(Draft),
    /// A search around these entries: an [`Answer::Plan`] again and again, until the plan is whole.
    Plan(Draft),
}

impl Ask {
    /// The run that it is about, where it is about one that is kept.
    pub const fn run(&self) -> Option<u32> {
        match self {
            Self::Details { run }
            | Self::RecordedJson { run }
            | Self::Live { run, .. }
            | Self::Export { run, .. }
            | Self::Time { run, .. }
            | Self::Derive { run, .. } => Some(*run),
            _ => None,
        }
    }

    /// Whether the answer needs the time of a run.
    pub const fn is_timed(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::Export { file: Export::Json, .. })
    }
}

/// What the time of a run depends on beside its setup.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeEntries {
    /// How data comes, and what the run costs.
    pub entered: Draft,
    /// The kernels of the person's own card, as they are kept.
    pub card: Option<String>,
}

/// The curves of one way to compute attention, by length; why there is no value where there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttentionCurve {
    /// [`Algorithm::name`](vramscope_engine::attention::Algorithm::name).
    pub algorithm: String,
    /// Highest bytes beyond the inputs.
    pub memory: Vec<(u64, Result<u64, String>)>,
    /// Estimated seconds.
    pub time: Vec<(u64, Result<f64, String>)>,
}

/// The largest value of a sweep that fits a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    /// The card's name.
    pub card: String,
    /// Bytes that a process can be given on it.
    pub room: u64,
    /// The value and what it takes; nothing where no value fits.
    pub found: Option<(u64, Needed)>,
    /// Values that were tried to begin with and may not be the end: the sweep's highest value fits.
    pub open: bool,
}

/// A single change that was simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// What it does.
    pub tried: Tried,
    /// The run with it, if there is one; the host does not keep it.
    pub run: Option<Run>,
}

/// What an answer says; a question has one answer, or one for each of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The run, or why there is none.
    Run(Result<Box<Run>, Refusal>),
    /// What a recording takes, or why it cannot be played.
    Recorded(Coded<Result<RecordedRun, Fault>>),
    /// The details of a run.
    Details(Box<Details>),
    /// What lives at an instant.
    Live(Live),
    /// The figures of one setup, or why there are none.
    Setup(Result<Box<Summary>, Refusal>),
    /// The run of entries that may be asked for next, if there is one; the host does not keep it.
    Near(Option<Box<Run>>),
    /// What one change does.
    Tried(Box<Tested>),
    /// How a number comes about.
    Derivation(Coded<Derivation>),
    /// The curves of one algorithm.
    Attention(Coded<AttentionCurve>),
    /// One value of a sweep.
    Point(Coded<Point>),
    /// What a sweep found for one card.
    Largest(Coded<Largest>),
    /// What is known of the largest micro-batch.
    Batches(Coded<LargestBatch>),
    /// The text of a file.
    File(String),
    /// Where the time of a step goes.
    Time(Coded<Result<Timing, NoTime>>),
    /// [`PlanNews`](super::plans::PlanNews) as JSON.
    Plan(String),
}

/// How many parts of a question are answered, this one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Answered.
    pub done: u32,
    /// Of so many.
    pub of: u32,
}

impl Progress {
    /// Whether nothing is left.
    pub const fn is_complete(self) -> bool {
        self.done >= self.of
    }
}

/// From the page to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Answer this, instead of what was asked for the same slot before.
    Ask {
        /// Of the page's choosing; the answers carry it.
        id: u32,
        /// What it is for.
        slot: Slot,
        /// The question.
        ask: Ask,
    },
    /// Answer no more for this slot.
    Cancel(Slot),
}

/// From the host to the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// An answer, or that there is none (any more).
    Answered {
        /// Of the question.
        id: u32,
        /// Of the question.
        slot: Slot,
        /// What is done of it.
        progress: Progress,
        /// The answer to this part.
        answer: Option<Box<Answer>>,
    },
    /// The host stopped at a fault of the program and answers nothing more.
    Fault(String),
}
