//! Memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes.

mod allocations;
mod category;
mod read;
mod recording;
mod segments;
mod stacks;
mod summary;
#[cfg(test)]
mod tests;
mod what_if;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use allocations::{Allocation, Allocations};
pub use category::Category;
pub use recording::{By, Instant, Recording, SegmentMap};
pub use segments::{Block, Holes, Segment};
pub use stacks::{Frame, StackId, Stacks};
pub(super) use summary::Read;
pub(crate) use summary::place_of;
pub use summary::{Group, Summary};
pub use what_if::{Expandable, Failure};

use super::pickle::PickleError;
use crate::allocator::Trace;
use crate::units::Bytes;

/// What a snapshot recorded (`torch/cuda/memory.py`, `_snapshot`).
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The recorded events of each device, in the order of the devices' numbers; empty where nothing
    /// was recorded.
    pub devices: Vec<Trace>,
    /// The stack of each event, as long as the events of its device.
    pub stacks_of: Vec<Vec<StackId>>,
    /// What the stacks are.
    pub stacks: Stacks,
    /// Segments of all devices as they were when the snapshot was taken.
    pub segments: Vec<Segment>,
    /// How the allocator was set up, where the snapshot says so.
    pub settings: Settings,
}

/// `allocator_settings`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// `PYTORCH_CUDA_ALLOC_CONF` as it was given.
    pub conf: String,
    /// Whether segments can grow.
    pub expandable_segments: bool,
    /// `max_split_size`, where one is set.
    pub max_split_size: Option<Bytes>,
}

/// Why bytes are no snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotError {
    /// Not a pickle of plain data.
    Pickle(PickleError),
    /// A pickle of something else.
    NoTraces,
    /// More events than values: one list stands in many places.
    Repeated,
    /// An event that cannot be read.
    Event {
        /// Its number among its device's, from 0.
        index: usize,
        /// What is wrong with it.
        fault: EventFault,
    },
}

/// What is wrong with an event of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventFault {
    /// Not a dictionary.
    NotDict,
    /// A key is missing, or its value is of another type.
    Lacks(&'static str),
    /// A size that no device holds.
    TooLarge,
    /// An action that PyTorch's allocator does not record.
    UnknownAction(String),
}

impl From<PickleError> for SnapshotError {
    fn from(error: PickleError) -> Self {
        Self::Pickle(error)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a memory snapshot: ")?;
        match self {
            Self::Pickle(error) => error.fmt(f),
            Self::NoTraces => f.write_str(
                "the pickle has no `device_traces`; expected what torch.cuda.memory._dump_snapshot writes after \
                 torch.cuda.memory._record_memory_history",
            ),
            Self::Repeated => f.write_str("one list of events stands in many places"),
            Self::Event { index, fault } => write!(f, "event {index} {fault}"),
        }
    }
}

impl fmt::Display for EventFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDict => f.write_str("is not a dictionary"),
            Self::Lacks(key) => write!(f, "has no `{key}` of the expected type"),
            Self::TooLarge => f.write_str("has a size that no device holds"),
            Self::UnknownAction(name) => write!(f, "has the unknown action `{name}`"),
        }
    }
}

impl std::error::Error for SnapshotError {}
