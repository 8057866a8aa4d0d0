//! Finds the largest micro-batch of each optimizer for one class of setups.

use super::inputs::is_within;
use super::pass::{Update, has_parts};
use super::{Candidate, Class, Search, distance_to, dominated, front};
use crate::optimizers;
use vramscope_engine::Setup;
use vramscope_engine::order::sort_by;
use vramscope_engine::setup::Optimizer;
use vramscope_engine::simulate::{Pass, SimulateError};
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_time::Passes;

/// Peak of live bytes of a pass, if it has been recorded.
fn peak(pass: &Option<Pass>) -> Option<Bytes> {
    pass.as_ref().map(|pass| pass.peak)
}

/// The micro-batches of a class, the passes that have been recorded for them, and their times.
struct Tried {
    batches: Vec<u64>,
    passes: Vec<Option<Pass>>,
    times: Vec<Option<Option<Passes>>>,
}

impl Tried {
    fn new(batches: Vec<u64>) -> Self {
        Self {
            passes: batches.iter().map(|_| None).collect(),
            times: vec![None; batches.len()],
            batches,
        }
    }

    /// Index of the recorded pass with the lowest peak.
    fn least(&self) -> Option<usize> {
        (0..self.passes.len())
            .filter(|&at| self.passes[at].is_some())
            .min_by_key(|&at| peak(&self.passes[at]))
    }
}

impl Search<'_> {
    /// Tries every optimizer and micro-batch of a class.
    pub(super) fn look_at(&mut self, class: &Class) -> Result<(), SimulateError> {
        let batches = self.space.batches_of(class.parallel.as_ref()).to_vec();
        if batches.is_empty() {
            return Ok(());
        }
        let count = batches.len();
        let floor = self.floor(class)?;
        if floor > self.room {
            let optim = self.space.optims.last().copied().unwrap_or_default();
            self.note_beyond(class, optim, floor);
            self.found.decided.bounded += self.space.optims.len() * count;
            return Ok(());
        }
        let updates = self.updates(class, count);
        let kept = self.unbeaten(&updates);
        let mut tried = Tried::new(batches);
        for (at, (optim, update)) in updates.into_iter().enumerate() {
            if kept.contains(&at) {
                self.try_batches(class, (optim, &update), &mut tried)?;
            } else {
                self.found.decided.dominated += count;
            }
        }
        Ok(())
    }

    /// Records the update of each optimizer that no other makes pointless; the others decide their `count` setups.
    fn updates(&mut self, class: &Class, count: usize) -> Vec<(Optimizer, Update)> {
        let mut updates = Vec::new();
        for optim in self.space.optims.clone() {
            if dominated::is_dominated_optimizer(&self.space, optim) {
                self.found.decided.dominated += count;
                continue;
            }
            match self.update(class, optim) {
                Some(Ok(update)) => updates.push((optim, update)),
                Some(Err(error)) => {
                    self.found.decided.refused += count;
                    self.refuse(error);
                }
                None => self.found.decided.refused += count,
            }
        }
        updates
    }

    /// Finds the largest micro-batch that fits with an optimizer, or the one that comes nearest.
    fn try_batches(
        &mut self,
        class: &Class,
        (optim, update): (Optimizer, &Update),
        tried: &mut Tried,
    ) -> Result<(), SimulateError> {
        let count = tried.batches.len();
        let is_first = tried.passes.iter().all(Option::is_none);
        if update.peak > self.room || (is_first && self.is_ruled_out(class, update)) {
            self.note_beyond(class, optim, update.peak);
            self.found.decided.bounded += count;
            return Ok(());
        }
        let hint = is_first.then(|| self.hint(class, (optim, update), &tried.batches));
        if let Some(at) = hint.flatten() {
            tried.passes[at] = self.record_pass(class, tried.batches[at]).ok();
        }
        if !self.fits_somewhere(update, &tried.passes) && tried.passes[0].is_none() {
            tried.passes[0] = Some(self.record_pass(class, tried.batches[0])?);
        }
        let best = self.largest(class, update, &tried.batches, &mut tried.passes);
        self.note_hint(class, optim, best);
        self.found.decided.summed += 1;
        self.found.decided.bounded += count - 1;
        let Some(at) = best.or_else(|| tried.least()) else {
            return Ok(());
        };
        let Some(pass) = &tried.passes[at] else { return Ok(()) };
        let time = tried.times[at].get_or_insert_with(|| self.time_within(class, pass));
        let candidate = self.candidate(class, optim, tried.batches[at], (pass.peak, time.as_ref()), update);
        if best.is_some() {
            self.found.fitting.push(candidate);
        } else {
            self.note_nearest(candidate);
        }
        Ok(())
    }

    /// Keeps a class that exceeds the room with an optimizer whatever the micro-batch, and the bytes that it takes at least.
    fn note_beyond(&mut self, class: &Class, optim: Optimizer, least: Bytes) {
        let setup = Setup {
            optim,
            ..class.setup.clone()
        };
        self.beyond.push((least, setup, class.parallel, class.input));
    }

    /// Returns true if the smallest micro-batch of a smaller sample already exceeds the room with these states.
    fn is_ruled_out(&self, class: &Class, update: &Update) -> bool {
        let parallel = class.parallel.as_ref();
        // If the largest micro-batch has no gradients beside it, it needs less memory than a smaller one, by at most
        // these gradients.
        let spared = if self.space.ends_without_gradients(parallel) {
            update.trained
        } else {
            Bytes::ZERO
        };
        let least = self.space.batches_of(parallel).first();
        least.is_some_and(|&batch| self.is_beyond(class, batch, self.room + spared, update))
    }

    /// Returns true if the same micro-batch of a smaller sample exceeds `room` with these states.
    pub(super) fn is_beyond(&self, class: &Class, batch: u64, room: Bytes, update: &Update) -> bool {
        let key = class.key();
        let input = |at: usize| &self.space.inputs[at].setup;
        self.peaks.iter().any(|known| {
            known.batch == batch
                && known.bytes + update.states > room
                && known.key == key
                && is_within(input(known.input), input(class.input))
        })
    }

    pub(super) fn note_nearest(&mut self, candidate: Candidate) {
        let nearest = self.found.nearest.as_ref();
        if nearest.is_none_or(|known| candidate.peak < known.peak) {
            self.found.nearest = Some(candidate);
        }
    }

    /// Indices of the optimizers that no other kept optimizer makes pointless: it would learn as much or more, take no
    /// more memory and be no slower, whatever the pass.
    fn unbeaten(&self, all: &[(Optimizer, Update)]) -> Vec<usize> {
        let distance = |at: usize| optimizers::distance(self.asked.optim, all[at].0);
        let times = |at: usize| {
            let update = &all[at].1;
            let paging = self.shared.paging(self.device, update.paged);
            update.time.map_or([0.0; 2], |times| times.map(|time| time + paging))
        };
        // Peaks within a small part of the room count as equal, as on the front.
        let slack = front::equal(self.room);
        let no_worse = |at: usize, than: usize| {
            let (one, other) = (&all[at].1, &all[than].1);
            distance(at) <= distance(than)
                && one.states <= other.states + slack
                && one.peak <= other.peak + slack
                && times(at).iter().zip(times(than)).all(|(time, other)| *time <= other)
        };
        let mut order: Vec<usize> = (0..all.len()).collect();
        sort_by(&mut order, |&a, &b| {
            distance(a).cmp(&distance(b)).then(times(a)[0].total_cmp(&times(b)[0]))
        });
        let mut kept: Vec<usize> = Vec::new();
        for at in order {
            // Compare with kept optimizers only. The slack is not transitive: an optimizer within the slack of a
            // dropped one may be outside that of the kept one.
            if !kept.iter().any(|&other| no_worse(other, at)) {
                kept.push(at);
            }
        }
        kept
    }

    /// Time of a pass, if it fits.
    pub(super) fn time_within(&self, class: &Class, pass: &Pass) -> Option<Passes> {
        let costs = self.recorder.costs.filter(|_| pass.peak <= self.room)?;
        let parts = class.parallel.as_ref().filter(|parallel| has_parts(parallel));
        let between = self.shared.between(parts, pass.work.phases())?;
        let mut passes = Passes::of(pass.work.phases(), costs);
        for (seconds, more) in passes.seconds.iter_mut().zip(between) {
            *seconds += more;
        }
        Some(passes)
    }

    /// Combines the peak and the time of the passes with the update to a setup.
    pub(super) fn candidate(
        &self,
        class: &Class,
        optim: Optimizer,
        batch: u64,
        (peak, passes): (Bytes, Option<&Passes>),
        update: &Update,
    ) -> Candidate {
        let setup = Setup {
            batch,
            accum: self.space.accum(batch, class.parallel.as_ref()),
            optim,
            ..class.setup.clone()
        };
        let parallel = class.parallel.as_ref();
        let time = passes.and_then(|passes| {
            let seconds = match parallel {
                Some(parallel) if !has_parts(parallel) => update.time?[0],
                _ => passes.clone().update(&update.work, &self.recorder.of_update(parallel)?),
            };
            let seconds = seconds + self.shared.paging(self.device, update.paged);
            self.shared
                .step(parallel, passes.seconds, setup.accum, seconds, update.trained)
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
