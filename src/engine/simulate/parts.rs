//! Cuts one recorded run into its first step and the later ones.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::steps::{Step, StepMarks};
use crate::tape::log::Event;

/// Positions of the forwards and backwards of one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passes {
    pub start: usize,
    /// Of the last micro-batch, as the two below.
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    /// Loss and inputs are dropped.
    pub end: usize,
}

/// Where the parts of the recorded run begin and end.
pub(super) enum Parts {
    /// One forward and backward, then two updates.
    Shared {
        passes: Passes,
        first_update: usize,
        second_update: usize,
        end: usize,
    },
    /// Two whole steps, each with the end of its update: gradients that stay make the second one's
    /// forward and backward another.
    Separate([(Passes, usize); 2]),
}

impl Parts {
    /// The first step and every later one, of a run that made so many storages.
    pub fn steps(&self, events: &mut [Event], births: usize) -> (Step, Step) {
        match self {
            Self::Shared {
                passes,
                first_update,
                second_update,
                end,
            } => {
                rename(events, passes.end, *first_update..*second_update);
                let ends = [*first_update, *second_update, *end];
                shared(events, passes, ends, births)
            }
            Self::Separate([first, second]) => {
                rename(events, first.0.start, second.0.start..second.1);
                (whole(events, first), whole(events, second))
            }
        }
    }
}

/// A state that the second update makes anew, dropping the first update's, keeps one name: a
/// later step then replaces its own. `from` is where such states were first made.
fn rename(events: &mut [Event], from: usize, second: Range<usize>) {
    let end = second.end;
    let second = &events[second];
    let ids = |birth: bool| {
        second
            .iter()
            .filter(move |e| e.is_birth() == birth)
            .map(|e| e.storage())
    };
    let (born, died): (HashSet<u32>, HashSet<u32>) = (ids(true).collect(), ids(false).collect());
    let outlive = ids(true).filter(|id| !died.contains(id));
    let old: HashMap<u32, u32> = ids(false).filter(|id| !born.contains(id)).zip(outlive).collect();
    if old.is_empty() {
        return;
    }
    for event in &mut events[from..end] {
        *event = old.get(&event.storage()).map_or(*event, |&id| event.renamed(id));
    }
}

fn whole(events: &[Event], (passes, end): &(Passes, usize)) -> Step {
    let pieces = Pieces {
        forward_backward: &events[passes.start..passes.end],
        update: &events[passes.end..*end],
        zero_grad: &[],
    };
    pieces.step(passes, |_| true)
}

/// The first step has the first update; later steps have the second, and nothing is born in
/// their forward and backward that outlives them, nor does anything die that was there before. Updates
/// and the run end at `ends`.
fn shared(events: &[Event], passes: &Passes, ends: [usize; 3], births: usize) -> (Step, Step) {
    let forward_backward = &events[passes.start..passes.end];
    let zero_grad = &events[ends[1]..ends[2]];
    let marked = |birth: bool, events: &mut dyn Iterator<Item = &Event>| {
        let mut marked = vec![false; births];
        events
            .filter(|e| e.is_birth() == birth)
            .for_each(|e| marked[e.storage() as usize] = true);
        marked
    };
    let dies = marked(false, &mut forward_backward.iter().chain(zero_grad));
    let born = marked(true, &mut forward_backward.iter());
    let first = Pieces {
        forward_backward,
        update: &events[passes.end..ends[0]],
        zero_grad,
    };
    let steady = Pieces {
        update: &events[ends[0]..ends[1]],
        ..first
    };
    let kept = |e: &Event| (if e.is_birth() { &dies } else { &born })[e.storage() as usize];
    (first.step(passes, |_| true), steady.step(passes, kept))
}

#[derive(Clone, Copy)]
struct Pieces<'a> {
    forward_backward: &'a [Event],
    update: &'a [Event],
    zero_grad: &'a [Event],
}

impl Pieces<'_> {
    /// `is_kept` says what is kept of forward and backward.
    fn step(&self, passes: &Passes, is_kept: impl Fn(&Event) -> bool) -> Step {
        let mut events = Vec::with_capacity(self.forward_backward.len() + self.update.len() + self.zero_grad.len());
        let mut at = |mark: usize, from: usize| {
            let piece = &self.forward_backward[from - passes.start..mark - passes.start];
            events.extend(piece.iter().filter(|event| is_kept(event)));
            events.len()
        };
        let mut marks = StepMarks {
            before_forward: at(passes.before_forward, passes.start),
            after_forward: at(passes.after_forward, passes.before_forward),
            after_backward: at(passes.after_backward, passes.after_forward),
            ..StepMarks::default()
        };
        at(passes.end, passes.after_backward);
        events.extend_from_slice(self.update);
        marks.after_optimizer = events.len();
        events.extend_from_slice(self.zero_grad);
        Step { events, marks }
    }
}
