//! Splits one recorded run into its first step and the steps after it.

use std::ops::Range;

use super::repeated::Repeated;
use super::steps::{Step, StepMarks};
use crate::order::sort_by_key;
use crate::tape::log::{Event, StorageId};
use crate::tape::{Allocations, Mark, Replaced, RestMarks};

/// Positions of the forwards and backwards of one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passes {
    pub start: usize,
    /// Position in the last micro-batch, as are the next two.
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    /// End of the step's backward, when loss and inputs are dropped.
    pub end: usize,
    /// Where every step but the first frees what a module keeps of the step before.
    pub replaced: Option<Replaced>,
}

impl Passes {
    /// Where later steps free what a module keeps, relative to the step's own start.
    fn replaced(&self) -> Option<Replaced> {
        let at = |replaced: Replaced| replaced.at - self.start;
        self.replaced.map(|replaced| Replaced {
            at: at(replaced),
            ..replaced
        })
    }

    /// Positions relative to the step's own start, for a step whose update ends at `update`.
    fn marks(&self, update: usize) -> StepMarks {
        StepMarks {
            before_forward: self.before_forward - self.start,
            after_forward: self.after_forward - self.start,
            after_backward: self.after_backward - self.start,
            after_optimizer: update - self.start,
        }
    }
}

/// Numbers of events at which the parts of the recorded run begin and end.
///
/// The first step differs from those after it, since its update makes the optimizer states. So two steps are recorded; where
/// both have the same forward and backward, these are recorded once.
pub(super) enum Parts {
    /// One forward and backward, then two updates; the ends of the first update, the second, and the run.
    Shared { passes: Passes, ends: [usize; 3] },
    /// Two whole steps, each with the ends of its update and of the step: what the first leaves behind, such as gradients,
    /// makes the second one's forward and backward different.
    Separate([(Passes, [usize; 2]); 2]),
}

impl Parts {
    /// Gives optimizer states that each update allocates anew one id for all steps ([`rename`]), in the events of a run with
    /// these storages.
    pub fn name_states(&self, events: &mut [Event], allocations: &Allocations) {
        match self {
            Self::Shared {
                passes,
                ends: [first, second, _],
            } => rename(events, passes.end, *first..*second, (allocations, false)),
            Self::Separate([first, second]) => {
                rename(events, first.0.start, second.0.start..second.1[1], (allocations, true));
            }
        }
    }

    /// Marks of what follows forward and backward, if the run was recorded in this form.
    pub fn rest(&self) -> Option<RestMarks> {
        match self {
            Self::Shared {
                passes,
                ends: [first, second, end],
            } => Some(RestMarks {
                ends: [passes.end, *first, *second, *end],
                replaced: passes.replaced(),
            }),
            Self::Separate(_) => None,
        }
    }

    /// Splits events with renamed states into the first step and every step after it.
    pub fn steps(&self, events: Vec<Event>) -> (Step, Step) {
        match self {
            Self::Shared { passes, ends } => shared(events, passes, *ends),
            Self::Separate([first, second]) => (whole(&events, first), whole(&events, second)),
        }
    }
}

/// Bits that note a storage's allocation and free within some events.
type Fate = u8;
const BORN: Fate = 1;
const DIES: Fate = 2;

/// Notes allocations and frees of storages in these events.
fn note<'a>(fates: &mut [Fate], events: impl IntoIterator<Item = &'a Event>) {
    for event in events {
        fates[event.storage() as usize] |= if event.is_alloc() { BORN } else { DIES };
    }
}

/// Renames states of which the second update (`second`) allocates new ones and frees the first update's: old and new get one
/// id, from event `from` on, before which no such state was made.
///
/// Steps after the second are replayed from its events. If these allocated a state under one id and freed it under another,
/// the third step would free the same old one again, and each step would leave a state behind.
///
/// The n-th state that is freed belongs to the n-th that is allocated; with `by_name`, for a whole step, which frees in
/// another order, to the one of the same name and size.
fn rename(events: &mut [Event], from: usize, second: Range<usize>, (of, by_name): (&Allocations, bool)) {
    let end = second.end;
    let second = &events[second];
    let allocations = of.len();
    let mut fates = vec![0; allocations];
    note(&mut fates, second);
    let only = |fate: Fate| {
        let is_it = move |event: &&Event| event.is_alloc() == (fate == BORN);
        let ids = second.iter().filter(is_it).map(|event| event.storage());
        let fates = &fates;
        ids.filter(move |&id| fates[id as usize] == fate)
    };
    let [mut old, mut new]: [Vec<StorageId>; 2] = [only(DIES).collect(), only(BORN).collect()];
    if by_name {
        let name = |id: &StorageId| (of[*id as usize].name, of[*id as usize].scope, of[*id as usize].bytes);
        sort_by_key(&mut old, name);
        sort_by_key(&mut new, name);
    }
    let replaced: Vec<(StorageId, StorageId)> = old.into_iter().zip(new).collect();
    if replaced.is_empty() {
        return;
    }
    let mut names: Vec<StorageId> = (0..allocations as StorageId).collect();
    for (old, new) in replaced {
        names[old as usize] = new;
    }
    for event in &mut events[from..end] {
        *event = event.renamed(names[event.storage() as usize]);
    }
}

/// Cuts out a step that was recorded on its own, with the ends of its update and of the step.
fn whole(events: &[Event], (passes, [update, end]): &(Passes, [usize; 2])) -> Step {
    Step {
        events: events[passes.start..*end].to_vec(),
        marks: passes.marks(*update),
    }
}

/// Makes the first step with the first update, and the steps after it with the second. The last argument has the ends of both
/// updates and of the run.
fn shared(mut events: Vec<Event>, passes: &Passes, [first_update, second_update, end]: [usize; 3]) -> (Step, Step) {
    let mut repeated = Repeated::with_room(end - passes.start);
    let instants = [
        (passes.before_forward, Mark::BeforeForward),
        (passes.after_forward, Mark::AfterForward),
        (passes.after_backward, Mark::AfterBackward),
    ];
    let mut from = passes.start;
    for (to, mark) in instants {
        repeated.receive(&events[from..to]);
        repeated.reach(mark);
        from = to;
    }
    repeated.receive(&events[from..passes.end]);
    let (update, zero_grad) = (&events[first_update..second_update], &events[second_update..end]);
    let steady = repeated.step(update, zero_grad, passes.replaced());
    // The remaining events are the first step, kept in place because there are thousands.
    events.truncate(end);
    events.drain(first_update..second_update);
    events.drain(..passes.start);
    let marks = passes.marks(first_update);
    (Step { events, marks }, steady)
}
