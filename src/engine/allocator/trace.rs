//! Recorded allocator events: `torch.cuda.memory._record_memory_history`.

use serde::Deserialize;

use super::options::Options;
use super::replay::{Replay, replay};
use crate::units::Bytes;

/// Action of the allocator (`TraceEntry::Action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A block was handed out; the size is what was asked for, before rounding.
    Alloc,
    /// A block was freed by its owner.
    FreeRequested,
    /// A block went back to its pool.
    FreeCompleted,
    /// A segment came from `cudaMalloc`.
    SegmentAlloc,
    /// A segment went to `cudaFree`.
    SegmentFree,
    /// Memory was mapped into an expandable segment.
    SegmentMap,
    /// Memory was unmapped from an expandable segment.
    SegmentUnmap,
    /// A request failed; the address is the device's free bytes.
    Oom,
    /// A snapshot was taken; changes nothing.
    Snapshot,
    /// A mark of the program's own; changes nothing.
    #[serde(alias = "user_defined")]
    UserDefined,
}

/// One event, as PyTorch records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "(Action, u64, u64, u64)")]
pub struct Event {
    /// Kind of event.
    pub action: Action,
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// CUDA stream, a pointer; 0 is the default stream.
    pub stream: u64,
}

impl From<(Action, u64, u64, u64)> for Event {
    fn from((action, address, size, stream): (Action, u64, u64, u64)) -> Self {
        Self {
            action,
            address,
            size,
            stream,
        }
    }
}

/// A recorded trace that starts from an empty allocator: the JSON of a `*.trace.json` file.
///
/// ```
/// use vramscope_engine::allocator::Trace;
///
/// let trace = Trace::from_json(br#"{"events": [["segment_alloc", 4096, 2097152, 0], ["alloc", 4096, 80, 0]]}"#)?;
/// assert_eq!(trace.events.len(), 2);
/// # Ok::<(), vramscope_engine::allocator::TraceError>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Trace {
    /// Events in order of time: `[action, address, bytes, stream]`.
    pub events: Vec<Event>,
    /// `allocated_bytes.all.peak` as PyTorch counted it, if the file has it.
    pub allocated_peak: Option<Bytes>,
    /// `reserved_bytes.all.peak` as PyTorch counted it, if the file has it.
    pub reserved_peak: Option<Bytes>,
}

impl Trace {
    /// Reads the JSON of a trace; keys that are not needed are ignored.
    ///
    /// # Errors
    /// When it is not JSON, has no `events`, or an event is not `[action, address, bytes, stream]`.
    pub fn from_json(json: &[u8]) -> Result<Self, TraceError> {
        serde_json::from_slice(json).map_err(|error| TraceError(error.to_string()))
    }

    /// Replays the events with the options that they show.
    pub fn replay(&self) -> Replay {
        let expandable_segments = self.events.iter().any(|event| event.action == Action::SegmentMap);
        replay(
            self.events.iter().copied(),
            Options {
                expandable_segments,
                ..Options::default()
            },
        )
    }
}

/// Reason that a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an allocator trace: {0}; expected a JSON object with `events`, a list of [action, address, bytes, stream]"
)]
pub struct TraceError(String);
