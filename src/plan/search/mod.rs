//! The search for setups that run on a card.
//!
//! A hundred thousand setups are not a hundred thousand simulations. What forward and backward hold does not depend
//! on the optimizer but for the states that lie beside them, and an update depends neither on the micro-batch nor on
//! checkpointing; so each is recorded by itself and they are put together by addition. In the micro-batch, the peak
//! of a pass is the highest of many lines, one for each instant, and so convex: the line through two recorded peaks
//! is below every later one, and what it puts beyond the room is out without a recording. An update that does not
//! fit rules out every pass before it, and a sample that does not fit every larger one. What another setup beats in
//! everything ([`dominated`]) is not recorded.

mod class;
mod distance;
mod dominated;
mod found;
mod front;
mod inputs;
mod largest;
mod parts;
mod pass;
mod shared;
mod space;
mod staged;
#[cfg(test)]
mod tests;
mod ways;

use vramscope_engine::Setup;
use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Parallel, Precision};
use vramscope_engine::simulate::{Ground, SimulateError};
use vramscope_engine::units::Bytes;
use vramscope_time::Costs;

pub(super) use front::order;
pub(super) use pass::{Recorder, Update, repeated, repeated_by};
pub(super) use shared::Shared;

/// How far a setup of a space is from what was asked.
pub(super) fn distance_to(space: &Space, input: usize, setup: &Setup, parallel: Option<&Parallel>) -> u32 {
    distance(space.asked(), setup) + distance::of_parallel(parallel, setup) + space.inputs[input].distance
}

pub use distance::distance;
pub use found::{Candidate, Decided, Found};
pub use front::front;
pub use inputs::inputs;
pub use space::{Entry, Input, MOST_ACCUMULATED, NoBatch, Samples, Space};

/// What is looked for.
pub struct Question<'a> {
    /// What may be changed.
    pub space: Space,
    /// The card; the reference card's shape where it is not known.
    pub device: Option<&'static Device>,
    /// What tells the time of a step.
    pub costs: Option<&'a Costs<'a>>,
    /// Live bytes that a setup may hold.
    pub room: Bytes,
}

/// A search, one forward and backward after another.
pub struct Search<'a> {
    space: Space,
    asked: Setup,
    shared: Shared,
    device: Option<&'static Device>,
    room: Bytes,
    recorder: Recorder<'a>,
    next: usize,
    updates: Vec<(UpdateKey, Option<Update>)>,
    bare: Vec<(UpdateKey, Bytes)>,
    grounds: Vec<(UpdateKey, Ground)>,
    /// Where the largest micro-batch of the class before lay, by what decides it most and the optimizer.
    hints: Vec<((Checkpointing, Loss, Optimizer), usize)>,
    /// What every pass takes that was recorded.
    peaks: Vec<Peak>,
    /// Setups whose update alone passes the room, with its peak.
    beyond: Vec<(Bytes, Setup, Option<Parallel>, usize)>,
    found: Found,
}

/// A class of setups: everything but micro-batch and optimizer.
struct Class {
    setup: Setup,
    parallel: Option<Parallel>,
    input: usize,
}

/// What tells updates apart: a setup of one sample, how it is shared, and the input.
type UpdateKey = (Setup, Option<Parallel>, usize);

/// What tells classes apart that take the same sample.
type Key = (Checkpointing, Loss, Attention, Freeze, Precision, Option<Parallel>);

/// Highest live bytes of a pass, which no larger sample comes below.
struct Peak {
    key: Key,
    input: usize,
    batch: u64,
    bytes: Bytes,
}

impl Class {
    fn key(&self) -> Key {
        let Setup {
            ckpt,
            loss,
            attn,
            freeze,
            precision,
            ..
        } = self.setup;
        (ckpt, loss, attn, freeze, precision, self.parallel)
    }
}

impl<'a> Search<'a> {
    /// A search that has not begun.
    pub fn new(question: Question<'a>) -> Self {
        let Question {
            space,
            device,
            costs,
            room,
        } = question;
        let shared = Shared::of(device);
        let asked = space
            .inputs
            .first()
            .map(|input| input.setup.clone())
            .unwrap_or_default();
        Self {
            space,
            asked,
            shared,
            device,
            room,
            recorder: Recorder::new(device.and_then(Device::gpu).unwrap_or_default(), costs, shared),
            next: 0,
            updates: Vec::new(),
            bare: Vec::new(),
            grounds: Vec::new(),
            hints: Vec::new(),
            peaks: Vec::new(),
            beyond: Vec::new(),
            found: Found::default(),
        }
    }

    /// How many classes of setups are dealt with, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.next, self.space.passes())
    }

    /// Deals with the next class, with every optimizer and micro-batch; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(class) = self.class(self.next) else {
            return false;
        };
        self.next += 1;
        let setups = self.space.optims.len() * self.space.batches_of(class.parallel.as_ref()).len();
        self.found.decided.setups += setups;
        let before = self.found.decided;
        if dominated::is_dominated(&self.space, &class.setup) {
            self.found.decided.dominated += setups;
        } else if let Err(error) = self.look_at(&class) {
            // Some of them may be counted already.
            self.found.decided = Decided {
                refused: before.refused + setups,
                ..before
            };
            self.refuse(error);
        }
        self.found.decided.recorded = self.recorder.recorded;
        true
    }

    /// What was found so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The space that is searched.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Deals with everything that is left.
    pub fn finish(mut self) -> Found {
        while self.step() {}
        self.close()
    }

    /// What was found; where nothing fits, with the nearest among what was ruled out unrecorded too.
    pub fn close(mut self) -> Found {
        if self.found.fitting.is_empty() {
            let mut beyond = std::mem::take(&mut self.beyond);
            sort_by_key(&mut beyond, |(peak, ..)| *peak);
            for (peak, setup, parallel, input) in beyond {
                if self.found.nearest.as_ref().is_some_and(|nearest| nearest.peak <= peak) {
                    break;
                }
                let class = Class { setup, parallel, input };
                let Some(&batch) = self.space.batches_of(class.parallel.as_ref()).first() else {
                    continue;
                };
                let pass = self.record_pass(&class, batch);
                if let (Ok(pass), Some(Ok(update))) = (pass, self.update(&class, class.setup.optim)) {
                    let time = self.time_within(&class, &pass);
                    let candidate =
                        self.candidate(&class, class.setup.optim, batch, (pass.peak, time.as_ref()), &update);
                    self.note_nearest(candidate);
                }
            }
            self.found.decided.recorded = self.recorder.recorded;
        }
        self.found
    }

    fn refuse(&mut self, error: SimulateError) {
        let why = error.to_string();
        if !self.found.refused.contains(&why) {
            self.found.refused.push(why);
        }
    }

    fn class(&self, number: usize) -> Option<Class> {
        let space = &self.space;
        if space.is_empty() {
            return None;
        }
        let mut left = number;
        let mut digit = |n: usize| {
            let at = left % n;
            left /= n;
            at
        };
        let (ckpt, loss, attn) = (
            space.ckpts[digit(space.ckpts.len())],
            space.losses[digit(space.losses.len())],
            space.attns[digit(space.attns.len())],
        );
        let (freeze, precision) = (
            space.freezes[digit(space.freezes.len())],
            space.precisions[digit(space.precisions.len())],
        );
        let parallel = space.parallels[digit(space.parallels.len())];
        // The smallest samples first: what does not fit with them does not with larger ones.
        let input = space.inputs.len() - 1 - digit(space.inputs.len());
        let setup = Setup {
            ckpt,
            loss,
            attn,
            freeze,
            precision,
            ..space.inputs[input].setup.clone()
        };
        (left == 0).then_some(Class { setup, parallel, input })
    }
}
