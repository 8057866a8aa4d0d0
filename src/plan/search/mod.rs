//! Searches for setups that run on a card.
//!
//! A hundred thousand setups do not need a hundred thousand simulations. The memory of forward and backward depends on
//! the optimizer only through its states, and an update depends on neither micro-batch nor checkpointing; so each is
//! recorded separately, and setups are composed by addition. As a function of the micro-batch, the peak of a pass is a
//! maximum of lines, one for each instant, and hence convex: the line through two recorded peaks is a lower bound
//! beyond them and excludes larger batches without recording. An update that does not fit excludes every pass before
//! it, and a sample that does not fit excludes every larger one. Dominated setups ([`dominated`]) are not recorded.

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
use vramscope_engine::simulate::{SimulateError, UpdateInput};
use vramscope_engine::units::Bytes;
use vramscope_time::Costs;

pub(super) use front::order;
pub(super) use pass::{Recorder, Update, repeated, repeated_by};
pub(super) use shared::Shared;

/// Distance of a setup of a space from the asked one.
pub(super) fn distance_to(space: &Space, input: usize, setup: &Setup, parallel: Option<&Parallel>) -> u32 {
    distance(space.asked(), setup) + distance::of_parallel(parallel, setup) + space.inputs[input].distance
}

pub use distance::distance;
pub use found::{Candidate, Decided, Found};
pub use front::front;
pub use inputs::inputs;
pub use space::{Entry, Input, MOST_ACCUMULATED, NoBatch, Samples, Space};

/// Inputs of a search.
pub struct Question<'a> {
    /// The search space.
    pub space: Space,
    /// The card; `None` simulates on the reference card.
    pub device: Option<&'static Device>,
    /// Rates and measured kernels, to estimate the time of a step.
    pub costs: Option<&'a Costs<'a>>,
    /// Limit on live bytes.
    pub room: Bytes,
}

/// A search that proceeds one forward and backward pass at a time.
pub struct Search<'a> {
    space: Space,
    asked: Setup,
    shared: Shared,
    device: Option<&'static Device>,
    room: Bytes,
    recorder: Recorder<'a>,
    next: usize,
    /// Recorded updates; `None` for one that cannot run.
    updates: Vec<(UpdateKey, Option<Update>)>,
    /// Live bytes after a step without optimizer states, on one of several GPUs: what another optimizer leaves beyond them is
    /// its states.
    bare: Vec<(UpdateKey, Bytes)>,
    /// Live memory from which the update of every optimizer starts.
    update_inputs: Vec<(UpdateKey, UpdateInput)>,
    /// Index of the largest micro-batch that fitted in the last class with the same checkpointing and loss, for each
    /// optimizer: where the next such class begins to look.
    hints: Vec<((Checkpointing, Loss, Optimizer), usize)>,
    /// Peaks of all recorded passes.
    peaks: Vec<Peak>,
    /// Setups whose update alone exceeds the room, with its peak.
    beyond: Vec<(Bytes, Setup, Option<Parallel>, usize)>,
    found: Found,
}

/// A class of setups that differ only in micro-batch and optimizer.
struct Class {
    setup: Setup,
    parallel: Option<Parallel>,
    input: usize,
}

/// Key of an update: a setup of one sample, its parallelism, and the index of the input.
type UpdateKey = (Setup, Option<Parallel>, usize);

/// Key of a class among those with the same sample.
type Key = (Checkpointing, Loss, Attention, Freeze, Precision, Option<Parallel>);

/// Peak of live bytes of a recorded pass, a lower bound for larger samples.
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
    /// Creates a search that has not started.
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
            update_inputs: Vec::new(),
            hints: Vec::new(),
            peaks: Vec::new(),
            beyond: Vec::new(),
            found: Found::default(),
        }
    }

    /// Number of classes decided, and of all classes.
    pub fn progress(&self) -> (usize, usize) {
        (self.next, self.space.passes())
    }

    /// Decides the setups of the next class, with every optimizer and micro-batch; returns false if there is none.
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
            // The class failed midway: some of its setups may already be counted.
            self.found.decided = Decided {
                refused: before.refused + setups,
                ..before
            };
            self.refuse(error);
        }
        self.found.decided.recorded = self.recorder.recorded;
        true
    }

    /// Results so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The search space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Decides all remaining classes.
    pub fn finish(mut self) -> Found {
        while self.step() {}
        self.close()
    }

    /// Returns the results; if nothing fits, the nearest setup may also be one that was excluded without recording.
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
        // The number is read digit by digit in a mixed radix, one digit for each setting, so that a search can stop and
        // go on at any class without a list of all of them.
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
        // The smallest samples come first: what does not fit with them does not fit with larger ones.
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
