//! The search for setups that run on a card.
//!
//! A hundred thousand setups are not a hundred thousand simulations. What forward and backward hold does not depend
//! on the optimizer but for the states that lie beside them, and an update depends neither on the micro-batch nor on
//! checkpointing; so each is recorded by itself and they are put together by addition. In the micro-batch, the peak
//! of a pass is the highest of many lines, one for each instant, and so convex: the line through two recorded peaks
//! is below every later one, and what it puts beyond the room is out without a recording. An update that does not
//! fit rules out every pass before it, and a sample that does not fit every larger one. What another setup beats in everything ([`dominated`]) is not recorded.

mod count;
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
#[cfg(test)]
mod tests;

use crate::Setup;
use crate::device::Device;
use crate::setup::{Attention, Checkpointing, Freeze, Loss, Optimizer, Parallel, Precision};
use crate::simulate::SimulateError;
use crate::time::Costs;
use crate::units::{Bytes, Seconds};

pub(super) use front::order;
pub(super) use pass::{Recorder, Update, repeated};
pub(super) use shared::Shared;

/// How far a setup of a space is from what was asked.
pub(super) fn distance_to(space: &Space, input: usize, setup: &Setup, parallel: Option<&Parallel>) -> u32 {
    distance(space.asked(), setup) + distance::of_parallel(parallel, setup) + space.inputs[input].distance
}

pub use distance::distance;
pub use found::{Candidate, Decided, Found};
pub use front::front;
pub use inputs::inputs;
pub use space::{Entry, Input, Samples, Space};

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
    bare: Vec<(UpdateKey, Option<Bytes>)>,
    /// Peaks of the least micro-batch of each class, by input.
    leasts: Vec<(Key, usize, Bytes)>,
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
        let asked = space
            .inputs
            .first()
            .map(|input| input.setup.clone())
            .unwrap_or_default();
        Self {
            space,
            asked,
            shared: Shared::of(device),
            device,
            room,
            recorder: Recorder {
                gpu: device.and_then(Device::gpu).unwrap_or_default(),
                costs,
                recorded: 0,
            },
            next: 0,
            updates: Vec::new(),
            bare: Vec::new(),
            leasts: Vec::new(),
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
        let setups = self.space.optims.len() * self.space.batches.len();
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
            beyond.sort_by_key(|(peak, ..)| *peak);
            for (peak, setup, parallel, input) in beyond {
                if self.found.nearest.as_ref().is_some_and(|nearest| nearest.peak <= peak) {
                    break;
                }
                let class = Class { setup, parallel, input };
                let batch = self.space.batches[0];
                let peak = self.record_pass(&class, batch);
                if let (Ok(peak), Some(Ok(update))) = (peak, self.update(&class, class.setup.optim)) {
                    let time = self.time_within(&class, batch, peak);
                    let candidate = self.candidate(&class, class.setup.optim, batch, (peak, time), update);
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

    fn look_at(&mut self, class: &Class) -> Result<(), SimulateError> {
        let batches = self.space.batches.clone();
        let mut passes: Vec<Option<Bytes>> = vec![None; batches.len()];
        let mut times: Vec<Option<Option<[f64; 2]>>> = vec![None; batches.len()];
        let mut updates: Vec<(Optimizer, Update)> = Vec::new();
        let floor = self.floor(class)?;
        if floor > self.room {
            let optim = self.space.optims.last().copied().unwrap_or_default();
            let setup = Setup {
                optim,
                ..class.setup.clone()
            };
            self.beyond.push((floor, setup, class.parallel, class.input));
            self.found.decided.bounded += self.space.optims.len() * batches.len();
            return Ok(());
        }
        for optim in self.space.optims.clone() {
            if dominated::is_dominated_optimizer(&self.space, optim) {
                self.found.decided.dominated += batches.len();
                continue;
            }
            match self.update(class, optim) {
                Some(Ok(update)) => updates.push((optim, update)),
                Some(Err(error)) => {
                    self.found.decided.refused += batches.len();
                    self.refuse(error);
                }
                None => self.found.decided.refused += batches.len(),
            }
        }
        let all = updates.clone();
        for (optim, update) in updates {
            if self.is_beaten(optim, &update, &all) {
                self.found.decided.dominated += batches.len();
                continue;
            }
            if update.peak > self.room {
                let setup = Setup {
                    optim,
                    ..class.setup.clone()
                };
                self.beyond.push((update.peak, setup, class.parallel, class.input));
                self.found.decided.bounded += batches.len();
                continue;
            }
            if passes[0].is_none() {
                if self.is_ruled_out(class, &update) {
                    self.found.decided.bounded += batches.len();
                    let setup = Setup {
                        optim,
                        ..class.setup.clone()
                    };
                    self.beyond.push((update.peak, setup, class.parallel, class.input));
                    continue;
                }
                passes[0] = Some(self.record_pass(class, batches[0])?);
                if let Some(peak) = passes[0] {
                    self.leasts.push((class.key(), class.input, peak));
                }
            }
            let best = self.largest(class, update, &batches, &mut passes);
            self.found.decided.summed += 1;
            self.found.decided.bounded += batches.len() - 1;
            let at = best.unwrap_or(0);
            let Some(peak) = passes[at] else { continue };
            let time = *times[at].get_or_insert_with(|| self.time_within(class, batches[at], peak));
            let candidate = self.candidate(class, optim, batches[at], (peak, time), update);
            if best.is_some() {
                self.found.fitting.push(candidate);
            } else {
                self.note_nearest(candidate);
            }
        }
        Ok(())
    }

    /// Whether the least micro-batch of a smaller sample passes the room with these states already.
    fn is_ruled_out(&self, class: &Class, update: &Update) -> bool {
        let key = class.key();
        let input = |at: usize| &self.space.inputs[at].setup;
        self.leasts.iter().any(|(known, at, peak)| {
            *known == key && *peak + update.states > self.room && inputs::is_within(input(*at), input(class.input))
        })
    }

    fn note_nearest(&mut self, candidate: Candidate) {
        let nearest = self.found.nearest.as_ref();
        if nearest.is_none_or(|known| candidate.peak < known.peak) {
            self.found.nearest = Some(candidate);
        }
    }

    /// Whether another optimizer learns as much or more, takes no more memory and is no slower, whatever the pass.
    fn is_beaten(&self, optim: Optimizer, update: &Update, all: &[(Optimizer, Update)]) -> bool {
        let distance = |optim| distance::of_optim(self.asked.optim, optim);
        let time = |update: &Update| {
            update
                .time
                .map(|time| time + self.shared.paging(self.device, update.paged))
        };
        // As on the front, peaks within a part of the room count as equal; where all is, the one before stays.
        let slack = front::equal(self.room);
        let no_worse = |of: (Optimizer, &Update), than: (Optimizer, &Update)| {
            distance(of.0) <= distance(than.0)
                && of.1.states <= than.1.states + slack
                && of.1.peak <= than.1.peak + slack
                && time(of.1) <= time(than.1)
        };
        let place = |of: Optimizer| all.iter().position(|(other, _)| *other == of);
        let beats = |&(other, by): &(Optimizer, Update)| {
            let back = no_worse((optim, update), (other, &by));
            other != optim && no_worse((other, &by), (optim, update)) && (!back || place(other) < place(optim))
        };
        all.iter().any(beats)
    }

    /// Seconds of forward and backward where they fit.
    fn time_within(&mut self, class: &Class, batch: u64, peak: Bytes) -> Option<[f64; 2]> {
        (peak <= self.room).then(|| self.time_passes(class, batch)).flatten()
    }

    /// A setup, put together from the peak and the time of its passes and from its update.
    fn candidate(
        &self,
        class: &Class,
        optim: Optimizer,
        batch: u64,
        (peak, time): (Bytes, Option<[f64; 2]>),
        update: Update,
    ) -> Candidate {
        let setup = Setup {
            batch,
            accum: self.space.accum(batch),
            optim,
            ..class.setup.clone()
        };
        let parallel = class.parallel.as_ref();
        let time = time.zip(update.time).and_then(|(pass, seconds)| {
            let seconds = seconds + self.shared.paging(self.device, update.paged);
            self.shared.step(parallel, pass, setup.accum, seconds, update.trained)
        });
        Candidate {
            peak: (peak + update.states).max(update.peak),
            time: time.map(Seconds::new),
            distance: distance_to(&self.space, class.input, &setup, parallel),
            parallel: class.parallel,
            input: class.input,
            setup,
        }
    }
}
