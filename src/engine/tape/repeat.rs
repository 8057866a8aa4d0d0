//! Repeats a part of a run that would go the same way again.
//!
//! A micro-batch that finds the tape as the one before found it makes the same allocations and frees. So once a
//! micro-batch has gone the way of the one before, the rest need not be run: their events are those of the last one, with
//! storages of their own that share its descriptions.

use std::ops::Range;

use super::core::Tape;
use super::follow::Mark;
use super::log::{Allocation, Event, Log, StorageId};

/// A position in a log.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// Number of events before it.
    pub events: usize,
    /// Number of storages and of modules before it.
    storages: usize,
    scopes: usize,
}

impl Point {
    /// Returns the number of storages that were made since an earlier point.
    pub fn storages_since(&self, earlier: &Self) -> u64 {
        (self.storages - earlier.storages) as u64
    }
}

/// A part of a log that goes the way of the part before it.
#[derive(Debug)]
pub struct Alike {
    begin: Point,
    end: Point,
    /// Storages that the part leaves, and the next one frees.
    pub left: Vec<StorageId>,
}

impl Log {
    fn point(&self) -> Point {
        Point {
            events: self.events.len(),
            storages: self.allocations.len(),
            scopes: self.scopes.len(),
        }
    }

    /// Compares the part between the last two points with that between the first two. `None` unless both make the same
    /// storages and free them at the same places, and each leaves only what the next one frees: a part after them
    /// would find what the last one found.
    fn alike(&self, [first, begin, end]: [Point; 3]) -> Option<Alike> {
        let [before, last] = [Part::new(self, first, begin), Part::new(self, begin, end)];
        let (count, len) = (last.storages.len(), last.events.len());
        let same = before.storages.len() == count
            && before.events.len() == len
            && (0..count).all(|i| before.description(i) == last.description(i))
            && before.scopes().eq(last.scopes());
        if !same {
            return None;
        }
        let mut live = [vec![false; count], vec![false; count]];
        let mut freed = vec![false; count];
        for (earlier, later) in before.events.iter().zip(last.events) {
            match (before.own(*earlier), last.own(*later)) {
                _ if earlier.is_alloc() != later.is_alloc() => return None,
                (Some(one), Some(other)) if one == other => {
                    live[0][one] = earlier.is_alloc();
                    live[1][one] = earlier.is_alloc();
                }
                // Each frees a storage that the part before it left.
                (None, None) if !later.is_alloc() => *freed.get_mut(before.own(*later)?)? = true,
                _ => return None,
            }
        }
        let [left_before, left] = live;
        let left_ids = (begin.storages..).zip(&left).filter(|(_, left)| **left);
        (left_before == left && left == freed).then(|| Alike {
            begin,
            end,
            left: left_ids.map(|(id, _)| id as StorageId).collect(),
        })
    }

    /// Adds the storages of a part once more.
    fn repeat_storages(&mut self, part: &Alike) {
        self.allocations.repeat(part.begin.storages..part.end.storages);
    }

    /// Adds the events in `range` once more, with storages that come `later` by this number.
    fn repeat_events(&mut self, range: Range<usize>, later: StorageId) {
        self.events.reserve(range.len());
        for at in range {
            let event = self.events[at];
            self.events.push(event.renamed(event.storage() + later));
        }
    }
}

/// A part of a log.
struct Part<'a> {
    log: &'a Log,
    events: &'a [Event],
    storages: Range<usize>,
    scopes: Range<usize>,
}

impl<'a> Part<'a> {
    fn new(log: &'a Log, begin: Point, end: Point) -> Self {
        Self {
            log,
            events: &log.events[begin.events..end.events],
            storages: begin.storages..end.storages,
            scopes: begin.scopes..end.scopes,
        }
    }

    /// Number of an event's storage among those that the part made, if it made it.
    fn own(&self, event: Event) -> Option<usize> {
        let id = event.storage() as usize;
        self.storages.contains(&id).then(|| id - self.storages.start)
    }

    /// Description of the `i`-th storage, with its module counted from the part's first.
    fn description(&self, i: usize) -> (Allocation, usize) {
        let allocation = self.log.allocations[self.storages.start + i];
        (
            Allocation { scope: 0, ..allocation },
            self.module(allocation.scope as usize),
        )
    }

    /// A module counted from the part's first, or from the end of all numbers if it is older.
    fn module(&self, scope: usize) -> usize {
        scope.checked_sub(self.scopes.start).unwrap_or(usize::MAX - scope)
    }

    /// The modules that the part entered: name, index, component, and the module around each.
    fn scopes(&self) -> impl Iterator<Item = (&'static str, Option<u32>, super::kind::Component, usize)> {
        let scopes = self.log.scopes[self.scopes.clone()].iter();
        scopes.map(|scope| {
            (
                scope.name,
                scope.index,
                scope.component,
                self.module(scope.parent as usize),
            )
        })
    }
}

impl Tape {
    /// Current position in the log.
    pub fn point(&self) -> Point {
        self.0.log.borrow().point()
    }

    /// Returns the part between the last two points if it goes the way of the part between the first two, and so would
    /// each one after it.
    pub fn alike(&self, points: [Point; 3]) -> Option<Alike> {
        self.0.log.borrow().alike(points)
    }

    /// Repeats the last part of the log, with the marks that it reached after these numbers of events, and returns the
    /// number by which the storages of the repetition come later. `number` counts repetitions from 1.
    pub fn repeat_part(&self, part: &Alike, number: u64, marks: &[(Mark, usize)]) -> StorageId {
        let each = part.end.storages - part.begin.storages;
        let later = (each as u64 * number) as StorageId;
        self.0.log.borrow_mut().repeat_storages(part);
        let mut from = part.begin.events;
        for &(mark, to) in marks {
            self.0.log.borrow_mut().repeat_events(from..to, later);
            self.reach(mark);
            from = to;
        }
        self.0.log.borrow_mut().repeat_events(from..part.end.events, later);
        later
    }
}
