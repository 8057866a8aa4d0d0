//! Messages between the page and its host. Both sides are the same program, so nothing here is versioned.

use serde::{Deserialize, Serialize};
use vramscope_engine::report::Instant;
use vramscope_engine::report::derivation::{Derivation, Quantity};
pub use vramscope_plan::Refusal;
use vramscope_plan::cost::CostRow;
use vramscope_plan::{Limit, Needed, Now, Point, Tried};

use super::around::AroundView;
use super::batches::LargestBatch;
use super::coded::Coded;
use super::export::Export;
use super::launched::{LaunchAnswer, Launched};
use super::recorded::{Changed, Packed, RecordedAnswer};
use super::shared_step::{Offered, OnNumber};
use super::timing::{NoTime, Timing};
use super::view::{Compared, Details, Live, RunView, Summary};
use crate::state::Draft;

/// Purpose of a question. A newer question replaces the older one of the same slot, whose answers are dropped. Slots
/// are ordered by urgency: the host works on the first one that has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Slot {
    /// The page's main run.
    Run,
    /// Details of that run, drawn after its figures.
    Details,
    /// List beside the timeline.
    Instant,
    /// Derivation of a number.
    Derivation,
    /// Export of the run to a file.
    Export,
    /// Files that start a run.
    Launch,
    /// The run that they start.
    LaunchRun,
    /// Prefetched runs for the values that the focused entry may take next.
    Prefetch,
    /// Time breakdown of the run's step.
    Time,
    /// Memory before and beside the run's steps.
    Around,
    /// Strategies that several GPUs can take.
    Strategies,
    /// Setups compared side by side.
    Setups,
    /// Two setups compared tensor by tensor.
    Difference,
    /// The setup on other numbers of GPUs.
    Numbers,
    /// Single changes to the setup.
    WhatIf,
    /// Curves of the attention page.
    Attention,
    /// Largest micro-batch on the plan page.
    Batches,
    /// Sweep on the plan page.
    Sweep,
    /// Search of the recommendations page.
    Plan,
    /// What the run costs on each card.
    Cost,
}

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// Run these entries; answered by [`Answer::Run`]. The host keeps the run for the questions below.
    Run(Draft),
    /// Memory of a recording: [`Answer::Recorded`]. The host keeps its tensors for the questions below.
    Recorded {
        /// The recording.
        file: Packed,
        /// Card and allocator.
        entries: Draft,
        /// True where it is seen first: then it may be held against the card that it was made for.
        first: bool,
    },
    /// Effects of single changes to the recording of this number: one [`Answer::RecordedChange`] each; no answer if the
    /// host has another one.
    RecordedChanges {
        /// [`Packed::number`].
        number: u32,
        /// Sizes, card and allocator to change.
        entries: Draft,
        /// Figures of the unchanged run.
        now: Now,
    },
    /// Search for the largest batch of the recording of this number: repeated [`Answer::Batches`] until it is found; no
    /// answer if the host has another one.
    RecordedBatches {
        /// [`Packed::number`].
        number: u32,
        /// Other sizes, card and allocator.
        entries: Draft,
    },
    /// Details of a kept run: [`Answer::Details`], or no answer if the run is gone.
    Details {
        /// Id of the run ([`RunView::id`]).
        run: u32,
    },
    /// Tensors live at an instant of a kept run: [`Answer::Live`], or no answer if the run is gone.
    Live {
        /// Id of the run ([`RunView::id`]).
        run: u32,
        /// Instant of the timeline.
        instant: Instant,
    },
    /// Export of a kept run: [`Answer::File`], or no answer if the run is gone.
    Export {
        /// Id of the run ([`RunView::id`]).
        run: u32,
        /// File to export.
        file: Export,
        /// Entries beside the setup that affect the run's time.
        entries: TimeEntries,
    },
    /// Time of a kept run's step: [`Answer::Time`] as soon as it is known, then again with its bottlenecks; no answer
    /// if the run is gone.
    Time {
        /// Id of the run ([`RunView::id`]).
        run: u32,
        /// Entries beside the setup that affect the run's time.
        entries: TimeEntries,
    },
    /// Memory before and beside the steps of a kept run: [`Answer::Around`], or no answer if the run is gone.
    Around {
        /// Id of the run ([`RunView::id`]).
        run: u32,
        /// Entry that describes how data is loaded, which names its workers; empty if there is none.
        data: String,
    },
    /// Figures of each setup, in order: one [`Answer::Setup`] each.
    Setups(Vec<Draft>),
    /// Two setups tensor by tensor: [`Answer::Difference`] once both are simulated.
    Difference(Box<[Draft; 2]>),
    /// Files that start a run, beside the page's entries: [`Answer::Launch`].
    Launch(Box<Launched>),
    /// Strategies that several GPUs can take for these entries: [`Answer::Strategies`], or no answer if they describe no
    /// model.
    Strategies(Draft),
    /// Figures of these entries on a few numbers of GPUs: one [`Answer::OnNumber`] each.
    Numbers(Draft),
    /// Runs of each set of entries, in order: one [`Answer::Prefetch`] each.
    Prefetch(Vec<Draft>),
    /// Effects of single changes: one [`Answer::Tried`] each.
    WhatIf {
        /// Entries to change.
        entries: Draft,
        /// Figures of the unchanged run.
        now: Now,
    },
    /// Derivation of a number of a kept run: [`Answer::Derivation`], or no answer if the run is gone.
    Derive {
        /// Id of the run ([`RunView::id`]).
        run: u32,
        /// Entries of the other run, for a number that compares two.
        changed: Option<Draft>,
        /// Number to derive.
        quantity: Coded<Quantity>,
    },
    /// Attention curves: one [`Answer::Attention`] per algorithm.
    Attention(Draft),
    /// A sweep: one [`Answer::Point`] per value, then one [`Answer::Largest`] per card.
    Sweep(Draft),
    /// Search for the largest micro-batch that trains: repeated [`Answer::Batches`] until it is found.
    Batches(Draft),
    /// Search around these entries: repeated [`Answer::Plan`] until the plan is complete.
    Plan {
        /// Entries to search around.
        entries: Draft,
        /// Kernels of the user's card as text, if one is selected.
        card: Option<String>,
    },
    /// What the run costs on each card and on several of them: one [`Answer::Cost`] each.
    Cost {
        /// Entries of the run.
        entries: Draft,
        /// Prices of cards, as [`Prices::read`](vramscope_plan::cost::Prices::read) takes them.
        prices: String,
        /// Kernels of the user's card as text, if one is selected.
        card: Option<String>,
    },
}

impl Ask {
    /// Returns the id of the kept run that the question is about, if any.
    pub const fn run(&self) -> Option<u32> {
        match self {
            Self::Details { run }
            | Self::Live { run, .. }
            | Self::Export { run, .. }
            | Self::Time { run, .. }
            | Self::Around { run, .. }
            | Self::Derive { run, .. } => Some(*run),
            _ => None,
        }
    }

    /// Returns true if the answer needs the time of a run.
    pub const fn is_timed(&self) -> bool {
        matches!(self, Self::Time { .. } | Self::Export { file: Export::Json, .. })
    }
}

/// Entries beside the setup that affect a run's time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeEntries {
    /// Entries for the data pipeline and for the run's cost.
    pub entered: Draft,
    /// Kernels measured on the user's own card, in their stored form.
    pub card: Option<String>,
}

/// Memory and time of one attention algorithm by length; each point holds a value or the reason why it has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttentionCurve {
    /// Name of the algorithm ([`Algorithm::name`](vramscope_engine::attention::Algorithm::name)).
    pub algorithm: String,
    /// Peak bytes beyond the inputs.
    pub memory: Vec<(u64, Result<u64, String>)>,
    /// Estimated seconds.
    pub time: Vec<(u64, Result<f64, String>)>,
}

/// Largest value of a sweep that fits a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    /// The card's name.
    pub card: String,
    /// Bytes available to a process on the card.
    pub room: u64,
    /// The value and the memory it needs; `None` if no value fits.
    pub found: Option<(u64, Needed)>,
    /// True if the sweep's highest value fits, so that the real limit may lie beyond it.
    pub open: bool,
    /// What stops the next larger value.
    pub limit: Limit,
}

/// A single change after simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// Effect of the change.
    pub tried: Tried,
    /// Run with the change, if it succeeded; the host does not keep it.
    pub run: Option<RunView>,
}

/// Answers; a question gets one, or one for each of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The run, or the reason for having none.
    Run(Result<Box<RunView>, Refusal>),
    /// Memory of a recording, or the fault in it.
    Recorded(Coded<RecordedAnswer>),
    /// Effect of one change to a recorded step.
    RecordedChange(Coded<Changed>),
    /// The details of a run.
    Details(Box<Details>),
    /// Tensors live at an instant.
    Live(Live),
    /// Figures of one setup, or the reason for having none.
    Setup(Result<Box<Summary>, Refusal>),
    /// Two setups and their difference.
    Difference(Coded<Compared>),
    /// What became of files that start a run.
    Launch(Coded<LaunchAnswer>),
    /// All strategies, each with the reason why the entries cannot take it, if there is one.
    Strategies(Coded<Vec<Offered>>),
    /// The entries on one number of GPUs.
    OnNumber(Coded<OnNumber>),
    /// A prefetched run, if it succeeded; the host does not keep it.
    Prefetch(Option<Box<RunView>>),
    /// Effect of one change.
    Tried(Box<Tested>),
    /// Memory before and beside the steps.
    Around(Coded<AroundView>),
    /// Derivation of a number.
    Derivation(Coded<Derivation>),
    /// The curves of one algorithm.
    Attention(Coded<AttentionCurve>),
    /// One value of a sweep.
    Point(Coded<Point>),
    /// Largest value found for one card.
    Largest(Coded<Largest>),
    /// Progress and result of the largest-batch search.
    Batches(Coded<LargestBatch>),
    /// Text of a file.
    File(String),
    /// Time breakdown of a step.
    Time(Coded<Result<Timing, NoTime>>),
    /// [`PlanNews`](super::plans::PlanNews) as JSON.
    Plan(String),
    /// The run on some number of a card.
    Cost(Coded<CostRow>),
}

/// Parts of a question that are answered, including the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Parts answered so far.
    pub done: u32,
    /// Total parts.
    pub of: u32,
}

impl Progress {
    /// Returns true if no part is left.
    pub const fn is_complete(self) -> bool {
        self.done >= self.of
    }
}

/// Messages from the page to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Answer this question and drop the pending one in the same slot.
    Ask {
        /// Id chosen by the page and repeated in the answers.
        id: u32,
        /// Purpose of the question.
        slot: Slot,
        /// The question.
        ask: Ask,
    },
    /// Stop answering the question in this slot.
    Cancel(Slot),
}

/// Messages from the host to the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// An answer; `None` if there is no (further) answer.
    Answered {
        /// Id of the question.
        id: u32,
        /// Slot of the question.
        slot: Slot,
        /// Parts answered so far.
        progress: Progress,
        /// Answer to this part.
        answer: Option<Box<Answer>>,
    },
    /// The host stopped after a fault in the program and answers nothing more.
    Fault(String),
}
