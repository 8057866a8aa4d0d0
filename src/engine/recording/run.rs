//! Recorded runs, read from recordings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::error::RecordingError;
use super::header::Header;
use super::marks;
use super::optimizer::OptimizerForm;
use crate::allocator::Options;
use crate::simulate::{Recording, Step, StepMarks, Work};
use crate::tape::log::{Event, Log, StorageId};
use crate::units::Bytes;

/// Description of a recorded run, apart from its memory.
#[derive(Debug, Clone, Serialize)]
pub struct About {
    /// Class of the model, such as `Qwen2VLForConditionalGeneration`; empty if no module ran.
    pub model: String,
    /// Header of the recording.
    #[serde(flatten)]
    pub header: Header,
    /// Number of completed steps.
    pub steps: usize,
    /// Number of operations in the whole recording.
    pub operations: u64,
    /// Sizes of the run, if the recording covers all sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Point>,
    /// Assumptions about values that are unknown without a GPU.
    pub assumed: Vec<Assumed>,
    /// What a dry run answered in place of the rest of the world: trackers, the network, files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<StandIn>,
    /// Packages on which libraries choose how to compute, looked for and not found where it was recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Batches of the run that the recorded steps took, if its loader was walked ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<Batches>,
    /// Operations whose kernels take unknown memory, with the number of their calls.
    pub unknown: Vec<(&'static str, u64)>,
    /// Kernels timed only by the memory that they read and write, with the number of their launches.
    pub untimed: Vec<(&'static str, u64)>,
}

/// Sizes of a run, and the range in which they are exact.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// Sizes by name.
    pub sizes: Vec<(String, u64)>,
    /// Least and highest recorded value of each size.
    pub exact: Vec<(String, [u64; 2])>,
}

/// Recorded run including kernels' internal memory, ready to be replayed through the allocator.
#[derive(Clone)]
pub struct RecordedRun {
    /// Description of the run.
    pub about: About,
    pub(super) options: Options,
    pub(super) log: Log,
    pub(super) events: Vec<Event>,
    pub(super) cues: Vec<(usize, Cue)>,
    pub(super) steps: Vec<marks::RecordedStep>,
    pub(super) streams: Vec<(StorageId, u32)>,
    pub(super) work: Work,
    pub(super) micro_batches: u64,
    pub(super) params: u64,
    pub(super) trainable: u64,
    pub(super) parameters: Vec<(StorageId, bool)>,
}

/// Settings that replace recorded ones without another recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Sets whether the allocator's segments grow (`expandable_segments`).
    pub expandable_segments: Option<bool>,
    /// Form of the optimizer's update.
    pub optimizer: Option<OptimizerForm>,
}

/// Assumption about a result that depends on unknown floats.
#[derive(Debug, Clone, Serialize)]
pub struct Assumed {
    /// Operation that the assumption concerns.
    pub what: String,
    /// Assumed result.
    pub how: String,
    /// Number of occurrences.
    pub count: u64,
}

/// What a dry run answered in place of the rest of the world.
#[derive(Debug, Clone, Serialize)]
pub struct StandIn {
    /// What the command asked for.
    pub what: String,
    /// What it got.
    pub how: String,
}

/// Batches that a run meets, as far as its loader was walked ahead, and those that were recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Batches {
    /// Steps of the run whose batches were looked at.
    pub walked: u64,
    /// Steps of the whole run, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Micro-batches of a step.
    pub each: u64,
    /// Batch of each recorded step.
    pub steps: Vec<RecordedBatch>,
    /// The one that needs the most memory, among `steps`.
    pub decides: usize,
}

/// Batch of a recorded step, by the largest of its micro-batches.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedBatch {
    /// Number of the run's step that takes it, from 1.
    pub step: u64,
    /// Why it was recorded: `early` in the run, or in what it is the largest (`positions`, `longest`, `pixels`, `labels`).
    pub why: Vec<String>,
    /// Positions of a micro-batch, padding included.
    pub positions: u64,
    /// Numbers in its images.
    pub pixels: u64,
    /// Positions with a label.
    pub labels: u64,
    /// Highest allocated bytes of the step.
    pub peak_allocated: Bytes,
}

/// Call of the script that queries or changes the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// `torch.cuda.empty_cache()`.
    EmptyCache,
    /// `torch.cuda.reset_peak_memory_stats()`.
    ResetPeak,
    /// Query of a figure.
    Ask(Question),
}

/// Figure that a script queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Allocated,
    MostAllocated,
    Reserved,
    MostReserved,
    /// Unsupported query.
    Other,
}

impl Question {
    /// Returns the question that a function's name asks.
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

impl RecordedRun {
    /// True if the allocator's segments grow (`expandable_segments`).
    pub fn expandable_segments(&self) -> bool {
        self.options.expandable_segments
    }

    /// Replaces recorded settings.
    ///
    /// # Errors
    /// If the form of the optimizer cannot be derived from the recorded one.
    pub fn with(mut self, overrides: Overrides) -> Result<Self, RecordingError> {
        if let Some(on) = overrides.expandable_segments {
            self.options.expandable_segments = on;
        }
        match overrides.optimizer {
            Some(form) => self.with_optimizer(form),
            None => Ok(self),
        }
    }

    /// Returns the log, which describes each storage.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns allocations and deallocations, in order.
    pub fn all_events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the numbers of events before the last step's begin and end.
    pub fn last_span(&self) -> Option<[usize; 2]> {
        self.steps.last().map(|step| [step.begin, step.end])
    }

    /// Returns allocations and deallocations before the first step.
    pub fn build(&self) -> &[Event] {
        let begin = self.steps.first().map_or(0, |step| step.begin);
        &self.events[..begin]
    }

    /// Returns the last step, with the marks of its last micro-batch.
    pub fn last_step(&self) -> Step {
        self.steps.last().map_or_else(
            || Step {
                events: Vec::new(),
                marks: StepMarks::default(),
            },
            |step| self.step(step, step.end),
        )
    }

    /// Returns a step's events up to `end`, and the beginnings of its phases among them.
    fn step(&self, step: &marks::RecordedStep, end: usize) -> Step {
        Step {
            events: self.events[step.begin..end].to_vec(),
            marks: StepMarks {
                before_forward: step.before_forward - step.begin,
                after_forward: step.after_forward - step.begin,
                after_backward: step.after_backward - step.begin,
                after_optimizer: step.after_optimizer - step.begin,
            },
        }
    }

    /// Leaves out the steps after one of them.
    pub(super) fn cut_after(&mut self, step: usize) {
        self.steps.truncate(step + 1);
    }

    /// Returns the options of the allocator.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Converts the run into one whose last step repeats: storages of the previous step that it frees become its own.
    pub fn into_recording(mut self) -> Recording {
        let (build, first, steady) = match self.steps.len() {
            0 => (self.events.clone(), self.last_step(), self.last_step()),
            1 => {
                let begin = self.steps[0].begin;
                (self.events[..begin].to_vec(), self.last_step(), self.last_step())
            }
            count => self.going_on(count),
        };
        Recording {
            emptied: vec![build.len()],
            build,
            first,
            steady,
            log: std::mem::take(&mut self.log),
            params: self.params,
            trainable: self.trainable,
            parameters: self.parameters,
            streams: self.streams,
            stages: Vec::new(),
            paged: Bytes::ZERO,
            failure: None,
            work: self.work,
        }
    }

    /// Returns the events before the first step, that step, and the last, which is renamed to follow itself.
    fn going_on(&self, count: usize) -> (Vec<Event>, Step, Step) {
        let [first, before, last] = [0, count - 2, count - 1].map(|i| &self.steps[i]);
        let mut one = self.step(first, self.steps[1].begin);
        let mut steady = self.step(last, last.end);
        let left = self.left(last.begin, last.end);
        for (begin, events) in [(first.begin, &mut one.events), (before.begin, &mut steady.events)] {
            let next = self.steps.iter().find(|step| step.begin > begin);
            let (end, until) = next.map_or((last.end, last.end), |step| (step.begin, step.end));
            // Storages left by this step that the next one frees.
            let dead: BTreeSet<StorageId> = self.frees(end, until).collect();
            let freed: Vec<StorageId> = self
                .left(begin, end)
                .into_iter()
                .filter(|id| dead.contains(id))
                .collect();
            let renamed = self.matched(&freed, &left);
            for event in events.iter_mut() {
                if let Some(id) = renamed.get(&event.storage()) {
                    *event = event.renamed(*id);
                }
            }
        }
        (self.events[..first.begin].to_vec(), one, steady)
    }

    /// Returns storages allocated between two events and live at the second, in order of allocation.
    fn left(&self, begin: usize, end: usize) -> Vec<StorageId> {
        let dead: BTreeSet<StorageId> = self.frees(begin, end).collect();
        let born = self.events[begin..end].iter().filter(|event| event.is_alloc());
        born.map(|event| event.storage())
            .filter(|id| !dead.contains(id))
            .collect()
    }

    /// Returns storages freed between two events.
    fn frees(&self, begin: usize, end: usize) -> impl Iterator<Item = StorageId> {
        let events = self.events[begin..end].iter();
        events.filter(|event| !event.is_alloc()).map(|event| event.storage())
    }

    /// Maps storages of one step to those of another with the same bytes, operation and module.
    fn matched(&self, ids: &[StorageId], others: &[StorageId]) -> BTreeMap<StorageId, StorageId> {
        let key = |id: StorageId| {
            let allocation = &self.log.allocations[id as usize];
            (allocation.bytes, allocation.name, allocation.scope)
        };
        let mut known: BTreeMap<_, VecDeque<StorageId>> = BTreeMap::new();
        for &other in others {
            known.entry(key(other)).or_default().push_back(other);
        }
        let matched = ids
            .iter()
            .filter_map(|&id| Some((id, known.get_mut(&key(id))?.pop_front()?)));
        matched.filter(|(id, other)| id != other).collect()
    }
}
