//! Writes the parts of a pass, with storages and modules of their own.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Range;

use super::super::log::{Allocation, Event, Log, ScopeId, StorageId};
use super::super::stack::Position;
use super::super::work::{HostOp, Launch, WorkItem};
use super::parts::{Layer, Part, Parts};
use super::places::{Instance, Place, Places};
use crate::allocator::MIN_BLOCK;

/// Marks a part that was not written yet, or a description that was not copied.
const NONE: u32 = u32::MAX;

/// The events of a pass as they are written.
pub struct Writer<'a> {
    pub places: Places<'a>,
    begin: Position,
    /// Events and descriptions of the storages, as recorded.
    recorded: (Vec<Event>, Vec<u32>),
    pub events: Vec<Event>,
    /// Ranges of events that only moved: begin and end before, begin now.
    pub moves: Vec<[usize; 3]>,
    /// Index of each storage's description.
    pub storages: Vec<u32>,
    /// True for each storage that is live.
    live: Vec<bool>,
    /// New ids of storages, one instance after the other.
    made: Vec<StorageId>,
    /// By part and layer, the beginning of its storages in `made`, and its first module.
    instances: Vec<Vec<(u32, ScopeId)>>,
    /// Workspaces of libraries: ids in the recording, and now.
    workspaces: Vec<(StorageId, StorageId)>,
    /// By description, an equal one of the same part that stands for it in copies.
    equals: Vec<u32>,
    /// By description, its copy for the instance that is being written.
    copies: Vec<u32>,
    /// The last module that was looked up for an instance, in the recording and in the instance.
    last_scope: Cell<Option<(Instance, ScopeId, ScopeId)>>,
}

impl<'a> Writer<'a> {
    /// Begins with an empty pass.
    pub fn new(places: Places<'a>, log: &Log, begin: Position) -> Self {
        let instances = (0..places.parts.parts.len()).map(|at| vec![(NONE, NONE); places.instances(at)]);
        let storages = begin.storage..log.allocations.len();
        let whole = places.parts.whole_size();
        Self {
            instances: instances.collect(),
            recorded: (
                log.events[begin.event..].to_vec(),
                storages
                    .map(|id| log.allocations.description_of(id as StorageId) as u32)
                    .collect(),
            ),
            equals: equals(log, places.parts),
            copies: vec![NONE; log.allocations.descriptions().len()],
            places,
            begin,
            events: Vec::with_capacity(whole.events),
            moves: Vec::new(),
            storages: Vec::with_capacity(whole.storages),
            live: Vec::with_capacity(whole.storages),
            made: Vec::with_capacity(whole.storages),
            workspaces: Vec::new(),
            last_scope: Cell::new(None),
        }
    }

    /// Writes the next part. `None` if its events do not follow from the recording.
    ///
    /// A layer that ran keeps its modules and descriptions. One that it stands for gets copies with its own index, so that
    /// labels, and the breakdown by layer, name it. What lies between layers is taken over event by event, except where it
    /// frees what layers made: there the recording has the frees of the layers that ran, and the whole pass those of all.
    pub fn part(&mut self, log: &mut Log, instance: Instance) -> Option<()> {
        let (at, layer) = instance;
        let part = self.places.part(at);
        let is_own = layer == self.places.own_layer(at);
        let first = if is_own { part.from.scope } else { log.scopes.len() };
        self.instances[at][layer] = (self.made.len() as u32, first as ScopeId);
        if !is_own {
            self.copy_scopes(log, instance)?;
            // A copied description names a module of this instance: one that was made for another would label its storages
            // with that one's layer.
            let number = |id: usize| id - self.begin.storage;
            for &description in &self.recorded.1[number(part.from.storage)..number(part.to.storage)] {
                self.copies[description as usize] = NONE;
            }
        }
        let end = part.to.event - self.begin.event;
        let mut at = part.from.event - self.begin.event;
        self.moves_from(part, at);
        let mut freed: Vec<Freed> = Vec::new();
        while at < end {
            // Cached keys and values, or hidden states that the output keeps, are freed outside the layers, one layer
            // after the other. Copying these events would free those of the layers that ran alone, and leave those of
            // all others live for good.
            if part.layer.is_none() {
                let frees = self.frees_of_layers(at..end);
                if frees > 0 {
                    if let Some([_, to, _]) = self.moves.last_mut() {
                        *to = self.begin.event + at;
                    }
                    freed.push(self.free_of_layers(at..at + frees)?);
                    at += frees;
                    self.moves_from(part, at);
                    continue;
                }
            }
            let event = self.recorded.0[at];
            at += 1;
            let now = match event.is_alloc() {
                true => self.make(log, (instance, is_own), event.storage())?,
                false => self.free(instance, event.storage())?,
            };
            self.events.extend(now.map(|id| event.renamed(id)));
        }
        // Two runs of frees may be one loop over all layers that something else interrupts at a layer that did not run; the
        // order would then be a guess.
        freed
            .iter()
            .all(|one| freed.iter().all(|other| one.is_apart_from(other)))
            .then_some(())
    }

    /// Copies the modules of a part; those that are entered from outside the layer are of another index.
    fn copy_scopes(&mut self, log: &mut Log, instance: Instance) -> Option<()> {
        let (at, layer) = instance;
        let part = self.places.part(at);
        let own = part.layer?;
        let run = self.places.own_layer(at) as u32;
        for number in part.from.scope..part.to.scope {
            let mut scope = log.scopes[number];
            let parent = self
                .places
                .home_of_scope(scope.parent)
                .and_then(|home| self.places.part(home).layer);
            let is_within = parent.is_some_and(|parent| (parent.stack, parent.run) == (own.stack, own.run));
            // `layers.3` becomes `layers.7`; a list inside of the layer, such as `experts.0`, keeps its indices.
            if !is_within {
                scope.index = scope.index.map(|index| index + layer as u32 - run);
            }
            scope.parent = self.scope(instance, scope.parent)?;
            log.scopes.push(scope);
        }
        Some(())
    }

    /// The module that is to an instance what `scope` is in the recording.
    fn scope(&self, instance: Instance, scope: ScopeId) -> Option<ScopeId> {
        if let Some((.., found)) = self
            .last_scope
            .get()
            .filter(|last| (last.0, last.1) == (instance, scope))
        {
            return Some(found);
        }
        let Some(home) = self.places.home_of_scope(scope) else {
            return Some(scope);
        };
        let (part, layer) = self.places.beside(instance, home)?;
        let (_, first) = self.instances[part][layer];
        let found = (first != NONE).then(|| first + scope - self.places.part(home).from.scope as ScopeId)?;
        self.last_scope.set(Some((instance, scope, found)));
        Some(found)
    }

    /// Makes a storage; none if it is a workspace that is there.
    fn make(
        &mut self,
        log: &mut Log,
        (instance, is_own): (Instance, bool),
        id: StorageId,
    ) -> Option<Option<StorageId>> {
        let now = (self.begin.storage + self.storages.len()) as StorageId;
        let recorded = self.recorded.1[id as usize - self.begin.storage];
        if self.places.home(id).is_none() {
            // A library's workspace is made by its first use and kept for the process, so of all instances one makes it.
            if !self.places.makes_workspace(instance)? {
                return Some(None);
            }
            self.workspaces.push((id, now));
            self.storages.push(recorded);
        } else {
            self.made.push(now);
            let description = if is_own {
                recorded
            } else {
                self.copy(log, instance, recorded)?
            };
            self.storages.push(description);
        }
        self.live.push(true);
        Some(Some(now))
    }

    /// Copy of a description for an instance.
    fn copy(&mut self, log: &mut Log, instance: Instance, recorded: u32) -> Option<u32> {
        // A loop over positions makes thousands of storages with equal descriptions. They share one copy: a copy for each
        // would multiply the descriptions by the number of layers, which deduplication is there to avoid.
        let recorded = self.equals[recorded as usize];
        let known = self.copies[recorded as usize];
        if known != NONE {
            return Some(known);
        }
        let allocation = log.allocations.descriptions()[recorded as usize];
        let scope = self.scope(instance, allocation.scope)?;
        let copy = log
            .allocations
            .describe(std::iter::once(Allocation { scope, ..allocation }));
        self.copies[recorded as usize] = copy;
        Some(copy)
    }

    /// The storage that an instance frees; none if another instance frees it.
    fn free(&mut self, instance: Instance, id: StorageId) -> Option<Option<StorageId>> {
        // What several layers share, such as a mask or cosines and sines, is freed once, by the last that uses it.
        if !self.places.is_of_own_stack(instance.0, id) && !self.places.frees_of_others(instance)? {
            return Some(None);
        }
        let now = match self.places.place(instance, id)? {
            Place::Before => return Some(Some(id)),
            Place::Workspace => return None,
            Place::Made(by, rank) => self.of(by, rank)?,
        };
        // A storage that is freed twice would mean that two parts of the recording were matched wrongly.
        self.end(now).then_some(Some(now))
    }

    /// Notes that the events of a part between layers have only moved from here on.
    fn moves_from(&mut self, part: &Part, at: usize) {
        if part.layer.is_none() {
            let [from, now] = [at, self.events.len()].map(|at| self.begin.event + at);
            self.moves.push([from, part.to.event, now]);
        }
    }

    /// The layer that made the storage which the event at this place frees.
    fn freed_layer(&self, at: usize) -> Option<Layer> {
        let event = Some(self.recorded.0[at]).filter(|event| !event.is_alloc())?;
        let (home, _) = self.places.home(event.storage())?;
        self.places.part(home).layer
    }

    /// Number of the first events of a range that free storages of layers, one layer of a stack after the other, in the
    /// order of layers or against it.
    fn frees_of_layers(&self, range: Range<usize>) -> usize {
        let mut before: Option<Layer> = None;
        let mut direction = Ordering::Equal;
        let goes_on = |at: &usize| {
            let Some(layer) = self.freed_layer(*at) else {
                return false;
            };
            let Some(last) = before.replace(layer) else { return true };
            let to = layer.run.cmp(&last.run);
            if direction.is_eq() {
                direction = to;
            }
            (last.stack, last.backward) == (layer.stack, layer.backward) && (to.is_eq() || to == direction)
        };
        range.take_while(goes_on).count()
    }

    /// Frees storages of layers between two layers: those that each layer made, one layer after the other. `None` if
    /// their order is not known.
    fn free_of_layers(&mut self, range: Range<usize>) -> Option<Freed> {
        let parts = self.places.parts;
        let Layer { stack, backward, .. } = self.freed_layer(range.start)?;
        let layers = &parts.stacks[stack];
        let mut frees = vec![Vec::new(); layers.runs.len()];
        let mut names = Vec::new();
        let ends = [range.start, range.end - 1].map(|at| self.freed_layer(at).map(|layer| layer.run));
        for at in range {
            let event = self.recorded.0[at];
            let (home, rank) = self.places.home(event.storage())?;
            frees[parts.parts[home].layer?.run].push((home, rank));
            names.push(self.places.name(home, rank));
        }
        let count = layers.representatives.len();
        // Frees of a single layer that stands for others tell no direction: whether the others are freed upwards or
        // downwards would decide which free blocks the allocator merges first.
        if ends[0] == ends[1] && !layers.is_single(ends[0]?) {
            return None;
        }
        for passed in 0..count {
            let layer = if ends[0] > ends[1] { count - 1 - passed } else { passed };
            let run = layers.representatives[layer];
            for &(home, rank) in &frees[run] {
                debug_assert_eq!(layers.part(backward, run), Some(home));
                let id = self.claim_of((home, layer), rank)?;
                self.events.push(Event::free(id));
            }
        }
        let runs: Vec<bool> = frees.iter().map(|frees| !frees.is_empty()).collect();
        let is_repeated = (0..runs.len()).any(|run| runs[run] && !layers.is_single(run));
        Some(Freed {
            of: (stack, backward),
            runs,
            names,
            is_repeated,
        })
    }

    /// The storage of this rank that an instance made.
    fn of(&self, (part, layer): Instance, rank: u32) -> Option<StorageId> {
        let (first, _) = self.instances[part][layer];
        (first != NONE).then_some(())?;
        self.made.get((first + rank) as usize).copied()
    }

    /// Notes that a storage is live no more; returns false if it was not live.
    fn end(&mut self, id: StorageId) -> bool {
        std::mem::take(&mut self.live[id as usize - self.begin.storage])
    }

    /// Takes a storage that outlives the pass: the one of this rank that an instance made.
    pub fn claim_of(&mut self, instance: Instance, rank: u32) -> Option<StorageId> {
        let id = self.of(instance, rank)?;
        self.end(id).then_some(id)
    }

    /// Takes a storage that outlives the pass, by its id in the recording.
    pub fn claim(&mut self, id: StorageId) -> Option<StorageId> {
        if let Some((home, rank)) = self.places.home(id) {
            return self.claim_of((home, self.places.own_layer(home)), rank);
        }
        let (_, now) = *self.workspaces.iter().find(|(recorded, _)| *recorded == id)?;
        self.end(now).then_some(now)
    }

    /// Returns true if the pass leaves storages that were not claimed.
    pub fn has_others_live(&self) -> bool {
        self.live.contains(&true)
    }

    /// A work item as an instance has it; `parameter` gives its parameter for that of the recording.
    pub fn item(&self, instance: Instance, item: &WorkItem, parameter: &dyn Fn(StorageId) -> StorageId) -> WorkItem {
        if instance.1 == self.places.own_layer(instance.0) {
            return item.clone();
        }
        match item {
            WorkItem::HostOp(HostOp::Accumulate(Some(id))) => {
                WorkItem::HostOp(HostOp::Accumulate(Some(parameter(*id))))
            }
            _ => item.map(&|launch| Launch {
                scope: self.scope(instance, launch.scope).unwrap_or(launch.scope),
                ..*launch
            }),
        }
    }
}

/// Returns for each description one of the same part that is equal, if one was found: chunks of positions make thousands of
/// equal storages.
fn equals(log: &Log, parts: &Parts) -> Vec<u32> {
    // A small direct-mapped cache is enough: equal storages follow one another closely, and one that is missed costs a copy
    // only.
    const PLACES: usize = 1 << 10;
    let descriptions = log.allocations.descriptions();
    let mut equals: Vec<u32> = (0..descriptions.len() as u32).collect();
    for part in parts.parts.iter().filter(|part| part.layer.is_some()) {
        let mut seen = [NONE; PLACES];
        for id in part.from.storage..part.to.storage {
            let own = log.allocations.description_of(id as StorageId);
            let description = &descriptions[own];
            let hash =
                (description.bytes / MIN_BLOCK) ^ (u64::from(description.scope) << 4) ^ description.name.len() as u64;
            let known = &mut seen[(hash ^ (hash >> 10)) as usize % PLACES];
            match descriptions.get(*known as usize) {
                Some(other) if other == description => equals[own] = *known,
                _ => *known = own as u32,
            }
        }
    }
    equals
}

/// Storages of layers that were freed one after the other.
struct Freed {
    /// Stack and direction.
    of: (usize, bool),
    /// For each layer that ran, true if it made some of them.
    runs: Vec<bool>,
    /// Their names.
    names: Vec<&'static str>,
    /// True if a layer that stands for others made some of them.
    is_repeated: bool,
}

impl Freed {
    /// Returns false if the order of layers goes on from one to the other: where it breaks off among the layers that did
    /// not run is not known.
    fn is_apart_from(&self, other: &Self) -> bool {
        let is_within = || self.runs.iter().zip(&other.runs).all(|(own, other)| !own || *other);
        let are_others = || !self.names.iter().any(|name| other.names.contains(name));
        self.of != other.of || !other.is_repeated || is_within() || are_others()
    }
}
