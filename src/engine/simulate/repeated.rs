//! Builds the steps after the first from the events of the first one.

use super::steps::{Step, StepMarks};
use crate::tape::log::{Event, StorageId};
use crate::tape::{Mark, Replaced};

/// Forward and backward of the first step as every step after it repeats them: without allocations that outlive the
/// step, and without frees of storages from before it.
#[derive(Default)]
pub(super) struct Repeated {
    events: Vec<Event>,
    marks: StepMarks,
    /// The first storage allocated in these events.
    first: Option<StorageId>,
    /// By storage from `first` on: the index of its allocation in `events`, or [`DEAD`].
    allocations: Vec<u32>,
    /// Numbers of received events before each that was left out.
    left_out: Vec<usize>,
    received: usize,
}

/// Marks a storage that was freed.
const DEAD: u32 = u32::MAX;

impl Repeated {
    /// Makes an empty list of events with room for `events`.
    pub fn with_room(events: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            // Most events are pairs of an allocation and a free.
            allocations: Vec::with_capacity(events / 2),
            ..Self::default()
        }
    }

    /// Takes in the next events.
    pub fn receive(&mut self, events: &[Event]) {
        for &event in events {
            self.received += 1;
            if event.is_alloc() {
                let first = *self.first.get_or_insert(event.storage());
                // Storages are numbered in the order of allocation.
                debug_assert_eq!((event.storage() - first) as usize, self.allocations.len());
                self.allocations.push(self.events.len() as u32);
            } else if let Some(alloc) = self.alloc(event) {
                *alloc = DEAD;
            } else {
                // The storage is from before the step.
                self.left_out.push(self.received - 1);
                continue;
            }
            self.events.push(event);
        }
    }

    /// Entry of the event's storage, if it was allocated in these events.
    fn alloc(&mut self, event: Event) -> Option<&mut u32> {
        let number = event.storage().checked_sub(self.first?)?;
        self.allocations.get_mut(number as usize)
    }

    /// Notes a mark.
    pub fn reach(&mut self, mark: Mark) {
        let now = self.events.len();
        match mark {
            Mark::BeforeForward => self.marks.before_forward = now,
            Mark::AfterForward => self.marks.after_forward = now,
            Mark::AfterBackward => self.marks.after_backward = now,
            Mark::Model | Mark::AfterOptimizer | Mark::End => {}
        }
    }

    /// Makes a step after the first, ending with this update and the events that drop the gradients; `replaced` is
    /// where it frees what a module keeps of the step before.
    pub fn step(mut self, update: &[Event], zero_grad: &[Event], replaced: Option<Replaced>) -> Step {
        if let Some(replaced) = replaced {
            self.replace(replaced);
        }
        for &event in zero_grad {
            if let Some(alloc) = self.alloc(event) {
                *alloc = DEAD;
            }
        }
        self.allocations.retain(|&alloc| alloc != DEAD);
        self.leave_out_allocations();
        let Self {
            mut events, mut marks, ..
        } = self;
        events.extend_from_slice(update);
        marks.after_optimizer = events.len();
        events.extend_from_slice(zero_grad);
        Step { events, marks }
    }

    /// Adds the free of a storage that the step before left. The step's own, which takes its place, has the same id.
    fn replace(&mut self, Replaced { at, storage }: Replaced) {
        let at = at - self.left_out.partition_point(|&left_out| left_out < at);
        let free = Event::free(storage);
        self.events.insert(at, free);
        for alloc in self.allocations.iter_mut().filter(|alloc| **alloc != DEAD) {
            *alloc += u32::from(*alloc as usize >= at);
        }
        let StepMarks {
            before_forward,
            after_forward,
            after_backward,
            ..
        } = &mut self.marks;
        for mark in [before_forward, after_forward, after_backward] {
            *mark += usize::from(*mark > at);
        }
        if let Some(alloc) = self.alloc(free) {
            *alloc = DEAD;
        }
    }

    /// Drops allocations that are never freed.
    fn leave_out_allocations(&mut self) {
        let n = self.events.len();
        for (before, &at) in self.allocations.iter().enumerate() {
            let next = self.allocations.get(before + 1).map_or(n, |&next| next as usize);
            self.events.copy_within(at as usize + 1..next, at as usize - before);
        }
        self.events.truncate(n - self.allocations.len());
        let StepMarks {
            before_forward,
            after_forward,
            after_backward,
            ..
        } = &mut self.marks;
        for mark in [before_forward, after_forward, after_backward] {
            *mark -= self.allocations.partition_point(|&at| (at as usize) < *mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outlives_a_step_or_was_there_before_it_is_not_repeated() {
        let [old, workspace, input, gradient, state] = [3, 7, 8, 9, 10];
        let (alloc, free) = (Event::alloc, Event::free);
        let mut repeated = Repeated::default();
        repeated.receive(&[free(old), alloc(workspace), alloc(input)]);
        repeated.reach(Mark::BeforeForward);
        repeated.receive(&[alloc(gradient)]);
        repeated.reach(Mark::AfterForward);
        repeated.receive(&[alloc(state), free(input)]);
        repeated.reach(Mark::AfterBackward);
        let update = [alloc(20), free(20)];
        let step = repeated.step(&update, &[free(gradient)], None);
        let passes = [alloc(input), alloc(gradient), free(input)];
        let whole = [&passes[..], &update, &[free(gradient)]].concat();
        assert_eq!(step.events, whole);
        let marks = step.marks;
        assert_eq!((marks.before_forward, marks.after_forward), (1, 2));
        assert_eq!((marks.after_backward, marks.after_optimizer), (3, 5));
    }
}
