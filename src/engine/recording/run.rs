//! What comes out of reading a recording.

use serde::Serialize;

use super::header::Header;
use super::marks;
use crate::allocator::Options;
use crate::simulate::{Step, StepMarks};
use crate::tape::log::{Event, Log, StorageId};

/// What was recorded, apart from its memory.
#[derive(Debug, Clone, Serialize)]
pub struct About {
    /// The class of the model, such as `Qwen2VLForConditionalGeneration`; empty where no module ran.
    pub model: String,
    /// What the recording says of itself.
    #[serde(flatten)]
    pub header: Header,
    /// Steps that ran to their end.
    pub steps: usize,
    /// Operations of the whole recording.
    pub operations: u64,
    /// What follows assumptions.
    pub assumed: Vec<Assumed>,
    /// Operations whose kernels take memory that no rule tells, each with how often it ran.
    pub unknown: Vec<(&'static str, u64)>,
}

/// A recorded run with what kernels take inside, ready to be played through the allocator.
pub struct Run {
    /// What was recorded.
    pub about: About,
    pub(super) options: Options,
    pub(super) log: Log,
    pub(super) events: Vec<Event>,
    pub(super) cues: Vec<(usize, Cue)>,
    pub(super) steps: Vec<marks::Step>,
    pub(super) streams: Vec<(StorageId, u32)>,
    pub(super) params: u64,
    pub(super) trainable: u64,
    pub(super) parameters: Vec<(StorageId, bool)>,
}

/// What depends on floats that nobody knows, and what it was taken to be.
#[derive(Debug, Clone, Serialize)]
pub struct Assumed {
    /// The operation.
    pub what: String,
    /// What its result was taken to be.
    pub how: String,
    /// How often.
    pub count: u64,
}

/// What the script asks or tells the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `torch.cuda.reset_peak_memory_stats()`.
    ResetPeak,
    /// A figure.
    Ask(Question),
}

/// A figure that a script asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Allocated,
    MostAllocated,
    Reserved,
    MostReserved,
    /// One that is not followed.
    Other,
}

impl Question {
    /// By the function's name.
    pub fn named(name: &str) -> Self {
        match name {
            "memory_allocated" => Self::Allocated,
            "max_memory_allocated" => Self::MostAllocated,
            "memory_reserved" => Self::Reserved,
            "max_memory_reserved" => Self::MostReserved,
            _ => Self::Other,
        }
    }
}

impl Run {
    /// True if the allocator's segments grow (`expandable_segments`).
    pub fn expandable_segments(&self) -> bool {
        self.options.expandable_segments
    }

    /// The run under an allocator whose segments grow, or do not.
    pub fn with_expandable_segments(mut self, on: bool) -> Self {
        self.options.expandable_segments = on;
        self
    }

    /// What each storage is.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Births and deaths before the first step.
    pub fn build(&self) -> &[Event] {
        let begin = self.steps.first().map_or(0, |step| step.begin);
        &self.events[..begin]
    }

    /// The last step, whose marks are those of its last micro-batch.
    pub fn last_step(&self) -> Step {
        let Some(step) = self.steps.last() else {
            return Step {
                events: Vec::new(),
                marks: StepMarks::default(),
            };
        };
        Step {
            events: self.events[step.begin..step.end].to_vec(),
            marks: StepMarks {
                before_forward: step.before_forward - step.begin,
                after_forward: step.after_forward - step.begin,
                after_backward: step.after_backward - step.begin,
                after_optimizer: step.after_optimizer - step.begin,
            },
        }
    }
}
