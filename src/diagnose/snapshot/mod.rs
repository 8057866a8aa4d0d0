//! Reads memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes.

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
use vramscope_engine::allocator::Trace;
use vramscope_engine::units::Bytes;

/// Contents of a snapshot (`torch/cuda/memory.py`, `_snapshot`).
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Recorded events of each device, by device index; empty for a device without recording.
    pub devices: Vec<Trace>,
    /// Stack of each event, for each device.
    pub stacks_of: Vec<Vec<StackId>>,
    /// The distinct stacks.
    pub stacks: Stacks,
    /// Segments of all devices at the moment of the snapshot.
    pub segments: Vec<Segment>,
    /// Settings of the allocator, if the snapshot contains them.
    pub settings: Settings,
}

/// Settings of the allocator (`allocator_settings` of a snapshot).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Value of `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// True if segments are expandable.
    pub expandable_segments: bool,
    /// `max_split_size` in bytes, if set.
    pub max_split_size: Option<Bytes>,
}

/// Error for bytes that are not a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotError {
    /// The input is not a pickle of plain data.
    Pickle(PickleError),
    /// The pickle contains something else.
    NoTraces,
    /// There are more events than stored values, since one list occurs in many places.
    Repeated,
    /// An event cannot be read.
    Event {
        /// Index among the events of its device, from 0.
        index: usize,
        /// The fault of the event.
        fault: EventFault,
    },
}

/// Fault of an event in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventFault {
    /// The event is not a dictionary.
    NotDict,
    /// A key is missing, or its value has the wrong type.
    Lacks(&'static str),
    /// The size exceeds the memory of any device.
    TooLarge,
    /// PyTorch's allocator does not record this action.
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
