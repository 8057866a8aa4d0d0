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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The input is not a pickle of plain data.
    #[error("not a memory snapshot: {0}")]
    Pickle(PickleError),
    /// The pickle contains something else.
    #[error(
        "not a memory snapshot: the pickle has no `device_traces`; expected what torch.cuda.memory._dump_snapshot writes \
         after torch.cuda.memory._record_memory_history"
    )]
    NoTraces,
    /// There are more events than stored values, since one list occurs in many places.
    #[error("not a memory snapshot: one list of events stands in many places")]
    Repeated,
    /// An event cannot be read.
    #[error("not a memory snapshot: event {index} {fault}")]
    Event {
        /// Index among the events of its device, from 0.
        index: usize,
        /// The fault of the event.
        fault: EventFault,
    },
}

/// Fault of an event in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventFault {
    /// The event is not a dictionary.
    #[error("is not a dictionary")]
    NotDict,
    /// A key is missing, or its value has the wrong type.
    #[error("has no `{0}` of the expected type")]
    Lacks(&'static str),
    /// The size exceeds the memory of any device.
    #[error("has a size that no device holds")]
    TooLarge,
    /// PyTorch's allocator does not record this action.
    #[error("has the unknown action `{0}`")]
    UnknownAction(String),
}

impl From<PickleError> for SnapshotError {
    fn from(error: PickleError) -> Self {
        Self::Pickle(error)
    }
}
