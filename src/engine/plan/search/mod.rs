//! The search for setups that run on a card.
//!
//! A hundred thousand setups are not a hundred thousand simulations. What forward and backward hold does not depend
//! on the optimizer but for the states that lie beside them, and an update depends neither on the micro-batch nor on
//! checkpointing; so each is recorded by itself and they are put together by addition. In the micro-batch, the peak
//! of a pass is the highest of many lines, one for each instant, and so convex: the line through two recorded peaks
//! is below every later one, and what it puts beyond the room is out without a recording.

mod count;
mod front;
mod space;

use crate::device::Device;
use crate::setup::Optimizer;
use crate::simulate::{Recording, SimulateError, record_checked};
use crate::tape::Gpu;
use crate::units::{Bytes, Seconds};
use crate::{Model, Setup};

use super::speed::{self, StepTime};
use count::{Counted, count};

pub use front::front;
pub use space::{OPEN, Space, distance};

/// A setup that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The setup, with its micro-batch and how many make a step.
    pub setup: Setup,
    /// Highest live bytes: of a pass with the states beside it, or of the update.
    pub peak: Bytes,
    /// Estimated time of a step of all samples; nothing where the card's rates are not known.
    pub time: Option<Seconds>,
    /// How far it is from what was asked ([`distance`]).
    pub distance: u32,
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Setups that fit, each with the largest micro-batch that does.
    pub fitting: Vec<Candidate>,
    /// The one with the lowest peak of those that do not.
    pub nearest: Option<Candidate>,
    /// Setups that were recorded.
    pub recorded: usize,
    /// Why passes could not be recorded, each reason once.
    pub refused: Vec<String>,
}

/// The setup with at most two micro-batches a step: with gradients there from the one before, all later ones hold the
/// same bytes.
pub(super) fn repeated(setup: &Setup) -> Setup {
    Setup {
        accum: setup.accum.min(2),
        ..setup.clone()
    }
}

/// A search, one forward and backward after another.
pub struct Search<'a> {
    model: &'a Model,
    asked: &'a Setup,
    device: Option<&'static Device>,
    gpu: Gpu,
    room: Bytes,
    space: Space,
    next: usize,
    updates: Vec<(Setup, Option<Update>)>,
    found: Found,
}

/// What an optimizer adds to a pass, and its update.
#[derive(Debug, Clone, Copy)]
struct Update {
    states: Bytes,
    peak: Bytes,
    time: Option<Seconds>,
}

/// A recorded pass at one micro-batch.
#[derive(Clone, Copy)]
struct Pass {
    peak: u64,
    time: Option<StepTime>,
}

impl<'a> Search<'a> {
    /// A search of a space for setups whose live bytes stay within `room`.
    pub fn new(model: &'a Model, asked: &'a Setup, space: Space, device: Option<&'static Device>, room: Bytes) -> Self {
        Self {
            model,
            asked,
            device,
            gpu: device.and_then(Device::gpu).unwrap_or_default(),
            room,
            space,
            next: 0,
            updates: Vec::new(),
            found: Found::default(),
        }
    }

    /// How many passes are done, and how many there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.next, self.space.passes())
    }

    /// Looks at the next pass, with every optimizer and micro-batch; whether there was one.
    pub fn step(&mut self) -> bool {
        let Some(setup) = self.pass(self.next) else {
            return false;
        };
        self.next += 1;
        if let Err(error) = self.look_at(&setup)
            && !self.found.refused.contains(&error.0)
        {
            self.found.refused.push(error.0);
        }
        true
    }

    /// What was found so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Looks at everything that is left.
    pub fn finish(mut self) -> Found {
        while self.step() {}
        self.found
    }

    fn pass(&self, number: usize) -> Option<Setup> {
        let space = &self.space;
        let mut left = number;
        let mut digit = |n: usize| {
            let at = left % n;
            left /= n;
            at
        };
        let setup = Setup {
            ckpt: space.ckpts[digit(space.ckpts.len())],
            loss: space.losses[digit(space.losses.len())],
            freeze: space.freezes[digit(space.freezes.len())],
            precision: space.precisions[digit(space.precisions.len())],
            ..self.asked.clone()
        };
        (left == 0 && !space.is_empty()).then_some(setup)
    }

    fn look_at(&mut self, setup: &Setup) -> Result<(), SimulateError> {
        let batches = self.space.batches.clone();
        let mut passes: Vec<Option<Pass>> = vec![None; batches.len()];
        passes[0] = Some(self.record_pass(setup, batches[0])?);
        for optim in self.space.optims.clone() {
            let Some(update) = self.update(setup, optim) else {
                continue;
            };
            let best = self.largest(setup, update, &batches, &mut passes);
            let at = best.unwrap_or(0);
            let Some(pass) = passes[at] else { continue };
            let candidate = self.candidate(setup, optim, batches[at], pass, update);
            if best.is_some() {
                self.found.fitting.push(candidate);
            } else if self
                .found
                .nearest
                .as_ref()
                .is_none_or(|known| candidate.peak < known.peak)
            {
                self.found.nearest = Some(candidate);
            }
        }
        Ok(())
    }

    /// The place of the largest micro-batch that fits, recorded.
    fn largest(
        &mut self,
        setup: &Setup,
        update: Update,
        batches: &[u64],
        passes: &mut [Option<Pass>],
    ) -> Option<usize> {
        let room = self.room.get().checked_sub(update.states.get())?;
        if update.peak > self.room || passes[0].is_none_or(|pass| pass.peak > room) {
            return None;
        }
        let mut good = 0;
        let mut bad = batches.len();
        while bad - good > 1 {
            let at = self.guess(room, batches, passes, good, bad);
            let known = match passes[at] {
                Some(pass) => pass,
                // What cannot be recorded at this size cannot at a larger one.
                None => match self.record_pass(setup, batches[at]) {
                    Ok(pass) => *passes[at].insert(pass),
                    Err(_) => {
                        bad = at;
                        continue;
                    }
                },
            };
            if known.peak <= room {
                good = at;
            } else {
                bad = at;
            }
        }
        Some(good)
    }

    /// The largest place between two that the line through the last two recorded peaks leaves within the room.
    fn guess(&self, room: u64, batches: &[u64], passes: &[Option<Pass>], good: usize, bad: usize) -> usize {
        let recorded: Vec<(u64, u64)> = (0..=good)
            .filter_map(|at| Some((batches[at], passes[at]?.peak)))
            .collect();
        let [.., (before, low), (last, high)] = recorded[..] else {
            return good + 1;
        };
        let slope = high.saturating_sub(low) / (last - before);
        let within = |at: usize| high.saturating_add(slope.saturating_mul(batches[at] - last)) <= room;
        (good + 1..bad).rev().find(|&at| within(at)).unwrap_or(good + 1)
    }

    fn record_pass(&mut self, setup: &Setup, batch: u64) -> Result<Pass, SimulateError> {
        let setup = repeated(&Setup {
            batch,
            accum: self.space.effective / batch,
            optim: Optimizer::Sgd,
            ..setup.clone()
        });
        let recording = self.record(&setup)?;
        let peak = count(&recording).pass.get();
        let time = self.device.and_then(|device| speed::step(&recording, device));
        Ok(Pass { peak, time })
    }

    fn record(&mut self, setup: &Setup) -> Result<Recording, SimulateError> {
        self.found.recorded += 1;
        record_checked(self.model, setup, self.gpu)
    }

    /// The update of an optimizer, which depends on precision and freezing alone.
    fn update(&mut self, setup: &Setup, optim: Optimizer) -> Option<Update> {
        let key = Setup {
            batch: 1,
            accum: 1,
            optim,
            ckpt: crate::setup::Checkpointing::Full,
            loss: self.asked.loss,
            ..setup.clone()
        };
        if let Some((_, known)) = self.updates.iter().find(|(known, _)| *known == key) {
            return *known;
        }
        let update = self.record_update(&key);
        self.updates.push((key, update));
        update
    }

    fn record_update(&mut self, setup: &Setup) -> Option<Update> {
        let without = Setup {
            optim: Optimizer::Sgd,
            ..setup.clone()
        };
        let bare: Counted = count(&self.record(&without).ok()?);
        let recording = self.record(setup).ok()?;
        let counted = count(&recording);
        let time = self.device.and_then(|device| speed::step(&recording, device));
        Some(Update {
            states: counted.end.saturating_sub(bare.end),
            peak: counted.update,
            time: time.map(|time| time.update),
        })
    }

    fn candidate(&self, setup: &Setup, optim: Optimizer, batch: u64, pass: Pass, update: Update) -> Candidate {
        let accum = self.space.effective / batch;
        let setup = Setup {
            batch,
            accum,
            optim,
            ..setup.clone()
        };
        let time = pass.time.zip(update.time).map(|(pass, update)| {
            let step = StepTime {
                pass: pass.pass,
                update,
            };
            step.of_step(accum)
        });
        Candidate {
            peak: (Bytes::new(pass.peak) + update.states).max(update.peak),
            time,
            distance: distance(self.asked, &setup),
            setup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::{Checkpointing, Freeze, Precision};
    use crate::simulate_on;

    fn searched(name: &str, asked: &Setup, effective: u64, gib: u64) -> (usize, Found) {
        let model = Model::from_catalogue(name).unwrap();
        let space = Space::around(&model, asked, effective, &[]);
        let len = space.len();
        let device = Device::by_name("H200").unwrap();
        (
            len,
            Search::new(&model, asked, space, Some(device), Bytes::gib(gib)).finish(),
        )
    }

    fn asked() -> Setup {
        Setup {
            batch: 4,
            seq: 128,
            precision: Precision::AmpBf16,
            ..Setup::default()
        }
    }

    #[test]
    fn what_is_put_together_is_what_a_simulation_says() {
        let (len, found) = searched("gpt2-medium", &asked(), 8, 6);
        assert!(len > found.recorded, "{len} setups, {} recordings", found.recorded);
        let model = Model::from_catalogue("gpt2-medium").unwrap();
        for candidate in &found.fitting {
            let report = simulate_on(&model, &repeated(&candidate.setup), Gpu::H200).unwrap();
            let (put, simulated) = (candidate.peak.get() as f64, report.peak_allocated.get() as f64);
            assert!((put - simulated).abs() < 0.02 * simulated, "{candidate:?}: {simulated}");
        }
    }

    #[test]
    fn the_largest_batch_fits_and_the_next_does_not() {
        let model = Model::from_catalogue("gpt2-medium").unwrap();
        let (_, found) = searched("gpt2-medium", &asked(), 64, 8);
        let room = Bytes::gib(8);
        assert!(!found.fitting.is_empty());
        for candidate in found.fitting.iter().filter(|c| c.setup.batch < 32) {
            assert!(candidate.peak <= room);
            let larger = Setup {
                batch: 2 * candidate.setup.batch,
                accum: 2,
                ..candidate.setup.clone()
            };
            let report = simulate_on(&model, &larger, Gpu::H200).unwrap();
            assert!(
                report.peak_allocated.get() as f64 > 0.98 * room.get() as f64,
                "{candidate:?}"
            );
        }
    }

    #[test]
    fn a_kept_entry_stays_and_a_front_beats_itself_nowhere() {
        let model = Model::from_catalogue("llava-1.5-7b").unwrap();
        let setup = Setup {
            seq: 1024,
            freeze: Freeze::Lora,
            ..Setup::default()
        };
        let space = Space::around(&model, &setup, 4, &["ckpt".into(), "optim".into()]);
        let device = Device::by_name("RTX 4090").unwrap();
        let found = Search::new(&model, &setup, space, Some(device), Bytes::gib(22)).finish();
        assert!(found.fitting.iter().all(|c| c.setup.ckpt == Checkpointing::None));
        assert!(found.fitting.iter().all(|c| c.setup.optim == setup.optim));
        assert!(found.fitting.iter().all(|c| c.setup.batch * c.setup.accum == 4));
        let front = front(&found.fitting);
        assert!(!front.is_empty());
        for (at, one) in front.iter().enumerate() {
            for other in &front[at + 1..] {
                assert!(
                    one.time > other.time || one.peak > other.peak,
                    "{one:?} beats {other:?}"
                );
            }
        }
    }
}
