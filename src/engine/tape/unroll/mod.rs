//! Unrolls a pass that ran with deduplicated layers: writes the events that it would have recorded if every layer had
//! run, with storages and modules of their own.
//!
//! A layer that stands for others has their kind and their neighbours' kinds, so each of the others makes and frees its
//! storages in the same places; those of the layer before and after it are those of its own neighbours. What does not
//! follow from that is refused, and the run is recorded again with every layer.

mod leaves;
mod parts;
mod places;
mod write;

use self::leaves::Gradient;
use self::parts::Parts;
use self::places::Places;
use self::write::Writer;
use super::core::Tape;
use super::follow::Mark;
use super::log::{Event, StorageId};
use super::stack::{Deduplication, Position};
use super::storage::Storage;
use super::tensor::Tensor;
use super::work::WorkItem;

/// A pass that runs with deduplicated layers.
#[derive(Debug)]
pub struct Rolled {
    begin: Position,
}

/// Positions in a pass before and after it was unrolled.
#[derive(Debug)]
pub struct Unrolled {
    /// Ranges of events and items that only moved: begin and end before, begin now.
    events: Vec<[usize; 3]>,
    items: Vec<[usize; 3]>,
}

impl Rolled {
    /// Position at which the pass begins.
    pub fn begin(&self) -> Position {
        self.begin
    }
}

impl Unrolled {
    /// Position of an event; `None` if it is in a layer.
    pub fn event(&self, at: usize) -> Option<usize> {
        moved(&self.events, at)
    }

    /// Position of a work item; `None` if it is in a layer.
    pub fn item(&self, at: usize) -> Option<usize> {
        moved(&self.items, at)
    }
}

fn moved(ranges: &[[usize; 3]], at: usize) -> Option<usize> {
    let range = ranges.iter().find(|[from, to, _]| (*from..=*to).contains(&at));
    range.map(|[from, _, now]| now + at - from)
}

impl Tape {
    /// Deduplicates the layers of the pass that begins here, unless a library is told of modules and gradients as they
    /// come, or the layers are deduplicated already.
    pub fn roll(&self) -> Option<Rolled> {
        let is_heard = self.watcher().is_some() || self.0.gradient_hook.borrow().is_some();
        if is_heard || self.0.deduplication.borrow().is_some() {
            return None;
        }
        self.hush_follower();
        self.lighten(Deduplication::new(false, false));
        Some(Rolled { begin: self.place() })
    }

    /// Writes what the pass would have recorded with every layer. `leaves` are the trained parameters, and `live` other
    /// tensors that the pass made and that are still live; marks are positions among events. On `None` the recording is
    /// of no use any more: [`Tape::has_unlike_layers`].
    pub fn unroll(
        &self,
        Rolled { begin }: Rolled,
        (leaves, live): (&[Tensor], &[Tensor]),
        marks: &[(Mark, usize)],
    ) -> Option<Unrolled> {
        let stacks = self.take_deduplication().stacks;
        let end = self.place();
        let unrolled = Parts::of(&stacks, begin, end)
            .and_then(|parts| self.write_whole(&parts, [begin, end], (leaves, live)))
            .and_then(|(written, unrolled)| self.replace(begin, written, unrolled, marks));
        if unrolled.is_none() {
            self.refuse_unlike_layers();
        }
        unrolled
    }

    /// Notes that the recording is of no use.
    pub fn refuse_unlike_layers(&self) {
        self.0.unlike_layers.set(true);
        self.unfollow();
    }

    /// Returns true if a pass could not be unrolled: its recording ends there.
    pub fn has_unlike_layers(&self) -> bool {
        self.0.unlike_layers.get()
    }

    /// Makes an empty tape with this one's settings; `works` if it records kernels and host ops.
    pub fn fresh(&self, works: bool) -> Self {
        let fresh = Self::roomy(self.gpu());
        fresh.set_group(self.group());
        fresh.set_stage(self.stage());
        fresh.0.sums_segments.set(self.0.sums_segments.get());
        if works {
            fresh.write_work();
        }
        fresh
    }

    fn write_whole(
        &self,
        parts: &Parts,
        [begin, end]: [Position; 2],
        (leaves, live): (&[Tensor], &[Tensor]),
    ) -> Option<(Written, Unrolled)> {
        let mut log = self.0.log.borrow_mut();
        let log = &mut *log;
        let mut items = self.0.work.borrow_mut();
        let mut writer = Writer::new(Places::new(log, parts, begin), log, begin);
        let mut item_moves = Vec::new();
        let leaves_of = leaves::by_layer(log, parts, leaves);
        let mut whole_items: Vec<WorkItem> = Vec::new();
        for (at, layer) in parts.whole() {
            let part = &parts.parts[at];
            if part.layer.is_none() {
                let [from, to] = [part.from.item, part.to.item];
                item_moves.push([from, to, begin.item + whole_items.len()]);
            }
            writer.part(log, (at, layer))?;
            if let Some(items) = items.as_deref() {
                let parameter = |id: StorageId| leaves_of.parameter(parts, (at, layer), leaves, id);
                let own = items.get(part.from.item..part.to.item)?;
                whole_items.extend(own.iter().map(|item| writer.item((at, layer), item, &parameter)));
            }
        }
        let gradients = leaves_of.gradients(&mut writer, leaves)?;
        let mut renumbered: Vec<(Storage, StorageId)> = Vec::new();
        let own = leaves.iter().filter_map(Tensor::grad).chain(live.iter().cloned());
        let workspaces = self.0.workspaces.borrow();
        let made = own
            .map(|x| x.storage().clone())
            .chain(workspaces.iter().map(|(_, storage)| storage.clone()));
        for storage in made {
            let is_of_pass = |id: &StorageId| *id as usize >= begin.storage;
            let Some(id) = storage.id().filter(is_of_pass) else {
                continue;
            };
            if renumbered.iter().all(|(known, _)| !known.same(&storage)) {
                renumbered.push((storage, writer.claim(id)?));
            }
        }
        if writer.has_others_live() {
            return None;
        }
        debug_assert_eq!(end.event, log.events.len());
        if let Some(items) = items.as_mut() {
            items.truncate(begin.item);
            items.append(&mut whole_items);
        }
        let written = Written {
            events: writer.events,
            storages: writer.storages,
            gradients,
            renumbered,
        };
        let unrolled = Unrolled {
            events: writer.moves,
            items: item_moves,
        };
        Some((written, unrolled))
    }

    /// Replaces the events of the pass.
    fn replace(
        &self,
        begin: Position,
        written: Written,
        unrolled: Unrolled,
        marks: &[(Mark, usize)],
    ) -> Option<Unrolled> {
        {
            let mut log = self.0.log.borrow_mut();
            log.events.truncate(begin.event);
            log.allocations.replace_from(begin.storage, &written.storages);
        }
        for (storage, id) in &written.renumbered {
            storage.renumber(*id);
        }
        for Gradient { leaf, like, id } in written.gradients {
            let storage = Storage::new(&self.0, Some(id));
            leaf.take_gradient(Tensor::from_parts(
                storage,
                *like.shape(),
                *like.strides(),
                like.dtype(),
                None,
            ));
        }
        self.resume_follower();
        let mut events = &written.events[..];
        for &(mark, at) in marks {
            let before = unrolled.event(at)? - self.mark();
            let (now, rest) = events.split_at_checked(before)?;
            self.append(now);
            self.reach(mark);
            events = rest;
        }
        self.append(events);
        Some(unrolled)
    }

    fn append(&self, events: &[Event]) {
        /// Enough for a message to another thread.
        const CHUNK: usize = 1 << 13;
        for chunk in events.chunks(CHUNK) {
            self.0.log.borrow_mut().events.extend_from_slice(chunk);
            self.tell();
        }
    }
}

/// A whole pass.
struct Written {
    events: Vec<Event>,
    /// Index of each storage's description.
    storages: Vec<u32>,
    gradients: Vec<Gradient>,
    /// Storages that are live, with their new ids.
    renumbered: Vec<(Storage, StorageId)>,
}
