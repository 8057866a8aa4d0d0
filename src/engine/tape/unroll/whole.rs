//! Writes the whole pass and puts it in the place of the recorded one.

use super::super::core::Tape;
use super::super::follow::Mark;
use super::super::log::{Event, StorageId};
use super::super::stack::{Deduplication, Position};
use super::super::storage::Storage;
use super::super::tensor::Tensor;
use super::super::work::WorkItem;
use super::leaves::{self, Gradient};
use super::parts::Parts;
use super::places::Places;
use super::write::Writer;
use super::{Left, Unrolled};

/// Writes a pass that began at a position and ran with these deduplicated layers.
pub fn write(
    t: &Tape,
    begin: Position,
    deduplication: Deduplication,
    left: Left<'_>,
    marks: &[(Mark, usize)],
) -> Option<Unrolled> {
    let end = t.position();
    let parts = Parts::of(&deduplication.stacks, begin, end)?;
    let (written, unrolled) = t.write_whole(&parts, [begin, end], left)?;
    t.replace(begin, written, unrolled, marks)
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

impl Tape {
    /// Writes every part.
    fn write_whole(
        &self,
        parts: &Parts,
        [begin, end]: [Position; 2],
        (leaves, live): Left<'_>,
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
        // Every storage that the pass leaves must belong to a tensor that is known here: one that nobody claims would stay
        // allocated in the log while its tensor is freed under its old id.
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
        // A thread that replays the log meanwhile is told each mark after exactly the events before it, so that its
        // figures of a phase are those of a replay from the finished log.
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
            self.send_new_events();
        }
    }
}
