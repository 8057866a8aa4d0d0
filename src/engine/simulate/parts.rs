//! Cuts one recorded run into its first step and the later ones.

use std::ops::Range;

use super::steps::{Step, StepMarks};
use crate::tape::log::{Event, StorageId};

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

impl Passes {
    /// The same of a step of its own, whose update ends there.
    fn marks(&self, update: usize) -> StepMarks {
        StepMarks {
            before_forward: self.before_forward - self.start,
            after_forward: self.after_forward - self.start,
            after_backward: self.after_backward - self.start,
            after_optimizer: update - self.start,
        }
    }
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
    pub fn steps(&self, mut events: Vec<Event>, births: usize) -> (Step, Step) {
        match self {
            Self::Shared {
                passes,
                first_update,
                second_update,
                end,
            } => {
                rename(&mut events, passes.end, *first_update..*second_update, births);
                let ends = [*first_update, *second_update, *end];
                shared(events, passes, ends, births)
            }
            Self::Separate([first, second]) => {
                rename(&mut events, first.0.start, second.0.start..second.1, births);
                (whole(&events, first), whole(&events, second))
            }
        }
    }
}

/// What becomes of a storage in some events.
type Fate = u8;
const BORN: Fate = 1;
const DIES: Fate = 2;

/// Notes what becomes of storages in these events.
fn note<'a>(fates: &mut [Fate], events: impl IntoIterator<Item = &'a Event>) {
    for event in events {
        fates[event.storage() as usize] |= if event.is_birth() { BORN } else { DIES };
    }
}

/// A state that the second update makes anew, dropping the first update's, keeps one name: a
/// later step then replaces its own. `from` is where such states were first made.
fn rename(events: &mut [Event], from: usize, second: Range<usize>, births: usize) {
    let end = second.end;
    let second = &events[second];
    let mut fates = vec![0; births];
    note(&mut fates, second);
    let only = |fate: Fate| {
        let is_it = move |event: &&Event| event.is_birth() == (fate == BORN);
        let ids = second.iter().filter(is_it).map(|event| event.storage());
        let fates = &fates;
        ids.filter(move |&id| fates[id as usize] == fate)
    };
    let replaced: Vec<(StorageId, StorageId)> = only(DIES).zip(only(BORN)).collect();
    if replaced.is_empty() {
        return;
    }
    let mut names: Vec<StorageId> = (0..births as StorageId).collect();
    for (old, new) in replaced {
        names[old as usize] = new;
    }
    for event in &mut events[from..end] {
        *event = event.renamed(names[event.storage() as usize]);
    }
}

/// A step that was recorded for itself, with the end of its update.
fn whole(events: &[Event], (passes, end): &(Passes, usize)) -> Step {
    Step {
        events: events[passes.start..*end].to_vec(),
        marks: passes.marks(*end),
    }
}

/// The first step has the first update; later steps have the second, and nothing is born in
/// their forward and backward that outlives them, nor does anything die that was there before. Updates
/// and the run end at `ends`.
fn shared(mut events: Vec<Event>, passes: &Passes, ends: [usize; 3], births: usize) -> (Step, Step) {
    let [first_update, second_update, end] = ends;
    events.truncate(end);
    let steady = steady(&events, passes, ends, births);
    // What is left is the first step: thousands of events need no second place.
    events.drain(first_update..second_update);
    events.drain(..passes.start);
    let marks = passes.marks(first_update);
    (Step { events, marks }, steady)
}

fn steady(events: &[Event], passes: &Passes, ends: [usize; 3], births: usize) -> Step {
    let [first_update, second_update, _] = ends;
    let (update, zero_grad) = (&events[first_update..second_update], &events[second_update..]);
    let mut fates = vec![0; births];
    note(&mut fates, &events[passes.start..passes.end]);
    note(&mut fates, zero_grad.iter().filter(|event| !event.is_birth()));
    let mut kept = Vec::with_capacity(passes.end - passes.start + update.len() + zero_grad.len());
    let mut keep = |from: usize, to: usize| {
        let passing = |event: &&Event| fates[event.storage() as usize] == BORN | DIES;
        kept.extend(events[from..to].iter().filter(passing));
        kept.len()
    };
    let mut marks = StepMarks {
        before_forward: keep(passes.start, passes.before_forward),
        after_forward: keep(passes.before_forward, passes.after_forward),
        after_backward: keep(passes.after_forward, passes.after_backward),
        ..StepMarks::default()
    };
    keep(passes.after_backward, passes.end);
    kept.extend_from_slice(update);
    marks.after_optimizer = kept.len();
    kept.extend_from_slice(zero_grad);
    Step { events: kept, marks }
}
