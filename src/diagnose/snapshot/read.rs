//! Converts a pickle to a snapshot.

use serde::Deserialize;
use serde::de::value::{Error as Untyped, StrDeserializer};

use super::segments::{Block, Segment};
use super::stacks::{Interner, StackId};
use super::{EventFault, Settings, Snapshot, SnapshotError};
use crate::pickle::{Node, Pickle};
use vramscope_engine::allocator::{Action, Event, Trace};
use vramscope_engine::units::Bytes;

impl Snapshot {
    /// Reads the pickle of a snapshot.
    ///
    /// # Errors
    /// If the bytes are not a pickle of plain data, or not a dictionary with `device_traces`, a list of events for each
    /// device; the error names the event and its fault.
    pub fn from_pickle(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let pickle = Pickle::read(bytes)?;
        let root = pickle.root();
        let traces = root
            .get("device_traces")
            .and_then(Node::items)
            .ok_or(SnapshotError::NoTraces)?;
        let mut reader = Reader {
            // A malicious pickle may contain one long list many times.
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

/// Largest size of an event in bytes. No device holds more, and sums over all events of a 4 GiB pickle stay below 2⁶⁴.
pub(super) const LARGEST: u64 = 1 << 40;

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
        let mut known = Known::default();
        for (index, entry) in events.items().ok_or(SnapshotError::NoTraces)?.enumerate() {
            self.spend()?;
            let (event, frames) = known
                .event(entry)
                .map_err(|fault| SnapshotError::Event { index, fault })?;
            trace.events.push(event);
            stacks.push(self.interner.stack(frames));
        }
        Ok((trace, stacks))
    }

    /// Reads a segment; `None` if it lacks the address or size that PyTorch always writes.
    fn segment(&mut self, node: Node) -> Result<Option<Segment>, SnapshotError> {
        self.spend()?;
        let number = |key: &str| node.get(key).and_then(Node::as_u64);
        let (Some(address), Some(size)) = (number("address"), number("total_size")) else {
            return Ok(None);
        };
        let mut segment = Segment {
            address,
            size: Bytes::new(size.min(LARGEST)),
            device: number("device").unwrap_or(0) as u32,
            stream: number("stream").unwrap_or(0),
            is_expandable: node.get("is_expandable").and_then(Node::as_bool).unwrap_or(false),
            blocks: Vec::new(),
        };
        let mut next = address;
        for block in node.get("blocks").and_then(Node::items).into_iter().flatten() {
            self.spend()?;
            let number = |key: &str| block.get(key).and_then(Node::as_u64);
            let size = number("size").unwrap_or(0).min(LARGEST);
            // Before PyTorch 2.0 blocks have no address: they follow one another.
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

/// Positions of an event's keys within its layout.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    action: Option<usize>,
    address: Option<usize>,
    size: Option<usize>,
    stream: Option<usize>,
    frames: Option<usize>,
}

impl Places {
    /// Finds the positions of the keys; if keys repeat, the last counts. `oom` has `device_free` instead of the
    /// address.
    fn of(entry: Node) -> Option<Self> {
        let mut places = Self::default();
        for (place, (key, _)) in entry.entries()?.enumerate() {
            match key.as_str() {
                Some("action") => places.action = Some(place),
                Some("addr" | "device_free") => places.address = Some(place),
                Some("size") => places.size = Some(place),
                Some("stream") => places.stream = Some(place),
                Some("frames") => places.frames = Some(place),
                _ => {}
            }
        }
        Some(places)
    }
}

/// Caches from events read before.
#[derive(Default)]
struct Known<'p> {
    /// Key positions by layout.
    places: Vec<Option<Places>>,
    /// Actions by their text, which the pickle stores once each.
    actions: Vec<(Node<'p>, Action)>,
}

/// Largest number of layouts; a snapshot has two, for `oom` and for all other events.
const MOST_LAYOUTS: usize = 1024;

impl<'p> Known<'p> {
    fn places(&mut self, entry: Node) -> Option<Places> {
        let Some(layout) = entry
            .layout()
            .map(|layout| layout as usize)
            .filter(|&layout| layout < MOST_LAYOUTS)
        else {
            return Places::of(entry);
        };
        if let Some(Some(known)) = self.places.get(layout) {
            return Some(*known);
        }
        let places = Places::of(entry)?;
        if self.places.len() <= layout {
            self.places.resize(layout + 1, None);
        }
        self.places[layout] = Some(places);
        Some(places)
    }

    fn action(&mut self, text: Node<'p>) -> Result<Action, EventFault> {
        if let Some((_, action)) = self.actions.iter().find(|(known, _)| known.is(text)) {
            return Ok(*action);
        }
        let name = text.as_str().ok_or(EventFault::Lacks("action"))?;
        let action = Action::deserialize(StrDeserializer::<Untyped>::new(name))
            .map_err(|_| EventFault::UnknownAction(name.chars().take(40).collect()))?;
        if self.actions.len() < 16 {
            self.actions.push((text, action));
        }
        Ok(action)
    }

    /// Reads a `TraceEntry` as `_snapshot` writes it, and its stack.
    fn event(&mut self, entry: Node<'p>) -> Result<(Event, Option<Node<'p>>), EventFault> {
        let places = self.places(entry).ok_or(EventFault::NotDict)?;
        let at = |place: Option<usize>| {
            let place = place?;
            entry
                .at(place)
                .or_else(|| entry.entries()?.nth(place).map(|(_, value)| value))
        };
        let number =
            |place: Option<usize>, key: &'static str| at(place).and_then(Node::as_u64).ok_or(EventFault::Lacks(key));
        let action = self.action(at(places.action).ok_or(EventFault::Lacks("action"))?)?;
        let size = number(places.size, "size");
        let event = Event {
            action,
            address: number(places.address, "addr")?,
            size: size?,
            stream: number(places.stream, "stream")?,
        };
        // A failed request may have had any size.
        if event.size > LARGEST && action != Action::Oom {
            return Err(EventFault::TooLarge);
        }
        Ok((event, at(places.frames)))
    }
}
