//! What every later step repeats of the first one.

use super::steps::{Step, StepMarks};
use crate::tape::Mark;
use crate::tape::log::{Event, StorageId};

/// The forwards and backwards of the first step as every later one repeats them: nothing is born in them that outlives
/// the step, nor does anything die that was there before.
#[derive(Default)]
pub(super) struct Repeated {
    events: Vec<Event>,
    marks: StepMarks,
    /// The first storage that was born in them.
    first: Option<StorageId>,
    /// By storage from that one on: which of the events is its birth, or [`DEAD`].
    births: Vec<u32>,
}

/// A storage that has died.
const DEAD: u32 = u32::MAX;

impl Repeated {
    /// Nothing yet, with room for so many events.
    pub fn with_room(events: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            // most of them are born and die
            births: Vec::with_capacity(events / 2),
            ..Self::default()
        }
    }

    /// Takes in what comes next.
    pub fn hear(&mut self, events: &[Event]) {
        for &event in events {
            if event.is_birth() {
                let first = *self.first.get_or_insert(event.storage());
                // storages are numbered in the order of birth
                debug_assert_eq!((event.storage() - first) as usize, self.births.len());
                self.births.push(self.events.len() as u32);
            } else if let Some(birth) = self.birth(event) {
                *birth = DEAD;
            } else {
                // it was there before
                continue;
            }
            self.events.push(event);
        }
    }

    /// The birth of the storage of an event, if it is one of these.
    fn birth(&mut self, event: Event) -> Option<&mut u32> {
        let number = event.storage().checked_sub(self.first?)?;
        self.births.get_mut(number as usize)
    }

    /// Notes an instant.
    pub fn reach(&mut self, mark: Mark) {
        let now = self.events.len();
        match mark {
            Mark::BeforeForward => self.marks.before_forward = now,
            Mark::AfterForward => self.marks.after_forward = now,
            Mark::AfterBackward => self.marks.after_backward = now,
            Mark::Model | Mark::AfterOptimizer | Mark::End => {}
        }
    }

    /// A later step, which ends with this update and with what drops the gradients.
    pub fn step(mut self, update: &[Event], zero_grad: &[Event]) -> Step {
        for &event in zero_grad {
            if let Some(birth) = self.birth(event) {
                *birth = DEAD;
            }
        }
        self.births.retain(|&birth| birth != DEAD);
        self.leave_out_births();
        let Self {
            mut events, mut marks, ..
        } = self;
        events.extend_from_slice(update);
        marks.after_optimizer = events.len();
        events.extend_from_slice(zero_grad);
        Step { events, marks }
    }

    /// Leaves out what is born and lives on.
    fn leave_out_births(&mut self) {
        let n = self.events.len();
        for (before, &at) in self.births.iter().enumerate() {
            let next = self.births.get(before + 1).map_or(n, |&next| next as usize);
            self.events.copy_within(at as usize + 1..next, at as usize - before);
        }
        self.events.truncate(n - self.births.len());
        let StepMarks {
            before_forward,
            after_forward,
            after_backward,
            ..
        } = &mut self.marks;
        for mark in [before_forward, after_forward, after_backward] {
            *mark -= self.births.partition_point(|&at| (at as usize) < *mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outlives_a_step_or_was_there_before_it_is_not_repeated() {
        let [old, workspace, input, gradient, state] = [3, 7, 8, 9, 10];
        let (birth, death) = (Event::birth, Event::death);
        let mut repeated = Repeated::default();
        repeated.hear(&[death(old), birth(workspace), birth(input)]);
        repeated.reach(Mark::BeforeForward);
        repeated.hear(&[birth(gradient)]);
        repeated.reach(Mark::AfterForward);
        repeated.hear(&[birth(state), death(input)]);
        repeated.reach(Mark::AfterBackward);
        let update = [birth(20), death(20)];
        let step = repeated.step(&update, &[death(gradient)]);
        let passes = [birth(input), birth(gradient), death(input)];
        let whole = [&passes[..], &update, &[death(gradient)]].concat();
        assert_eq!(step.events, whole);
        let marks = step.marks;
        assert_eq!((marks.before_forward, marks.after_forward), (1, 2));
        assert_eq!((marks.after_backward, marks.after_optimizer), (3, 5));
    }
}
