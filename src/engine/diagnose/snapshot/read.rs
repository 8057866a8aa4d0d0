//! From a pickle to a snapshot.

use serde::Deserialize;
use serde::de::value::{Error as Untyped, StrDeserializer};

use super::segments::{Block, Segment};
use super::stacks::{Interner, StackId};
use super::{EventFault, Settings, Snapshot, SnapshotError};
use crate::allocator::{Action, Event, Trace};
use crate::diagnose::pickle::{Node, Pickle};
use crate::units::Bytes;

impl Snapshot {
    /// Reads the pickle of a snapshot.
    ///
    /// # Errors
    /// When it is no pickle of plain data, or not a dictionary with `device_traces`, a list of events
    /// for each device; the message says which event lacks what.
    pub fn from_pickle(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let pickle = Pickle::read(bytes)?;
        let root = pickle.root();
        let traces = root
            .get("device_traces")
            .and_then(Node::items)
            .ok_or(SnapshotError::NoTraces)?;
        let mut reader = Reader {
            // A hostile pickle may hold one long list many times over.
            budget: pickle.len(),
            interner: Interner::default(),
        };
        let mut snapshot = Self::default();
        for events in traces {
            let (trace, stacks) = reader.trace(events)?;
            snapshot.devices.push(trace);
            snapshot.stacks_of.push(stacks);
        }
        for segment in root.get("segments").and_then(Node::items).into_iter().flatten() {
            snapshot.segments.extend(reader.segment(segment)?);
        }
        snapshot.settings = root.get("allocator_settings").map(settings).unwrap_or_default();
        snapshot.stacks = reader.interner.finish();
        Ok(snapshot)
    }
}

struct Reader {
    budget: usize,
    interner: Interner,
}

impl Reader {
    fn spend(&mut self) -> Result<(), SnapshotError> {
        self.budget = self.budget.checked_sub(1).ok_or(SnapshotError::Repeated)?;
        Ok(())
    }

    fn trace(&mut self, events: Node) -> Result<(Trace, Vec<StackId>), SnapshotError> {
        let (mut trace, mut stacks) = (Trace::default(), Vec::new());
        for (index, entry) in events.items().ok_or(SnapshotError::NoTraces)?.enumerate() {
            self.spend()?;
            let (event, frames) = event(entry).map_err(|fault| SnapshotError::Event { index, fault })?;
            trace.events.push(event);
            stacks.push(self.interner.stack(frames));
        }
        Ok((trace, stacks))
    }

    /// A segment; `None` where one lacks its address or size, as no segment of PyTorch does.
    fn segment(&mut self, node: Node) -> Result<Option<Segment>, SnapshotError> {
        self.spend()?;
        let number = |key: &str| node.get(key).and_then(Node::as_u64);
        let (Some(address), Some(size)) = (number("address"), number("total_size")) else {
            return Ok(None);
        };
        let mut segment = Segment {
            address,
            size: Bytes::new(size),
            device: number("device").unwrap_or(0) as u32,
            stream: number("stream").unwrap_or(0),
            is_expandable: node.get("is_expandable").and_then(Node::as_bool).unwrap_or(false),
            blocks: Vec::new(),
        };
        let mut next = address;
        for block in node.get("blocks").and_then(Node::items).into_iter().flatten() {
            self.spend()?;
            let number = |key: &str| block.get(key).and_then(Node::as_u64);
            let size = number("size").unwrap_or(0);
            // Before 2.0 a block has no address: blocks lie one behind another.
            let address = number("address").unwrap_or(next);
            next = address.saturating_add(size);
            let state = block.get("state").and_then(Node::as_str).unwrap_or_default();
            segment.blocks.push(Block {
                address,
                size: Bytes::new(size),
                is_live: state.starts_with("active"),
                stack: self.interner.stack(block.get("frames")),
            });
        }
        Ok(Some(segment))
    }
}

fn settings(node: Node) -> Settings {
    let text = |key: &str| node.get(key).and_then(Node::as_str);
    Settings {
        conf: text("PYTORCH_CUDA_ALLOC_CONF")
            .unwrap_or_default()
            .chars()
            .take(1000)
            .collect(),
        expandable_segments: node.get("expandable_segments").and_then(Node::as_bool).unwrap_or(false),
        max_split_size: node
            .get("max_split_size")
            .and_then(Node::as_u64)
            .filter(|&bytes| bytes < 1 << 50)
            .map(Bytes::new),
    }
}

/// `TraceEntry` as `_snapshot` writes it, and its stack; `oom` has `device_free` in the place of the address.
fn event(entry: Node) -> Result<(Event, Option<Node>), EventFault> {
    let (mut action, mut address, mut size, mut stream, mut frames) = (None, None, None, None, None);
    for (key, value) in entry.entries().ok_or(EventFault::NotDict)? {
        match key.as_str() {
            Some("action") => action = value.as_str(),
            Some("addr" | "device_free") => address = value.as_u64(),
            Some("size") => size = value.as_u64(),
            Some("stream") => stream = value.as_u64(),
            Some("frames") => frames = Some(value),
            _ => {}
        }
    }
    let name = action.ok_or(EventFault::Lacks("action"))?;
    let event = Event {
        action: known(name).ok_or_else(|| EventFault::UnknownAction(name.chars().take(40).collect()))?,
        address: address.ok_or(EventFault::Lacks("addr"))?,
        size: size.ok_or(EventFault::Lacks("size"))?,
        stream: stream.ok_or(EventFault::Lacks("stream"))?,
    };
    Ok((event, frames))
}

fn known(action: &str) -> Option<Action> {
    Action::deserialize(StrDeserializer::<Untyped>::new(action)).ok()
}
