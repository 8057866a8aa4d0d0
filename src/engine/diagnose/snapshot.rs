//! Memory snapshots: the pickle that `torch.cuda.memory._dump_snapshot` writes.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{Error as Untyped, StrDeserializer};

use super::pickle::{Node, Pickle, PickleError};
use crate::allocator::{Action, Event, Trace};

/// What a snapshot recorded (`torch/cuda/memory.py`, `_snapshot`).
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The recorded events of each device, in the order of the devices' numbers; empty where nothing
    /// was recorded.
    pub devices: Vec<Trace>,
}

impl Snapshot {
    /// Reads the pickle of a snapshot.
    ///
    /// # Errors
    /// When it is no pickle of plain data, or not a dictionary with `device_traces`, a list of events
    /// for each device; the message says which event lacks what.
    pub fn from_pickle(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let pickle = Pickle::read(bytes)?;
        let traces = pickle
            .root()
            .get("device_traces")
            .and_then(Node::items)
            .ok_or(SnapshotError::NoTraces)?;
        // A hostile pickle may hold one long list many times over.
        let mut budget = pickle.len();
        let devices = traces
            .map(|events| trace(events, &mut budget))
            .collect::<Result<_, _>>()?;
        Ok(Self { devices })
    }
}

fn trace(events: Node, budget: &mut usize) -> Result<Trace, SnapshotError> {
    let mut trace = Trace::default();
    for (index, entry) in events.items().ok_or(SnapshotError::NoTraces)?.enumerate() {
        *budget = budget.checked_sub(1).ok_or(SnapshotError::Repeated)?;
        trace
            .events
            .push(event(entry).map_err(|fault| SnapshotError::Event { index, fault })?);
    }
    Ok(trace)
}

/// `TraceEntry` as `_snapshot` writes it; `oom` has `device_free` in the place of the address.
fn event(entry: Node) -> Result<Event, EventFault> {
    let (mut action, mut address, mut size, mut stream) = (None, None, None, None);
    for (key, value) in entry.entries().ok_or(EventFault::NotDict)? {
        match key.as_str() {
            Some("action") => action = value.as_str(),
            Some("addr" | "device_free") => address = value.as_u64(),
            Some("size") => size = value.as_u64(),
            Some("stream") => stream = value.as_u64(),
            _ => {}
        }
    }
    let name = action.ok_or(EventFault::Lacks("action"))?;
    Ok(Event {
        action: known(name).ok_or_else(|| EventFault::UnknownAction(name.chars().take(40).collect()))?,
        address: address.ok_or(EventFault::Lacks("addr"))?,
        size: size.ok_or(EventFault::Lacks("size"))?,
        stream: stream.ok_or(EventFault::Lacks("stream"))?,
    })
}

fn known(action: &str) -> Option<Action> {
    Action::deserialize(StrDeserializer::<Untyped>::new(action)).ok()
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
            Self::UnknownAction(name) => write!(f, "has the unknown action `{name}`"),
        }
    }
}

impl std::error::Error for SnapshotError {}

#[cfg(test)]
mod tests;
