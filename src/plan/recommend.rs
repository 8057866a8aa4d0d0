//! Recommends a setup by replaying a search's candidates through the allocator.

use super::reason::{Reason, reasons};
use super::search::{Candidate, Found, Recorder, Shared, Space, distance_to, order, repeated_by};
use vramscope_engine::allocator::Options;
use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by;
use vramscope_engine::simulate::{Recording, SimulateError, Simulation, Trial, attempt_recorded, stops_in_some_order};
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_time::Costs;

/// A setup that trains within the limit, confirmed by a replay through the allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The setup and its memory and time.
    pub candidate: Candidate,
    /// Replay of its first steps within the limit.
    pub trial: Trial,
    /// The next larger micro-batch and whether it trains, if the search space has one.
    pub next: Option<(u64, bool)>,
}

/// The recommended setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommended {
    /// The setup and its replay.
    pub settled: Settled,
    /// Differences from the asked setup, and the effect of each.
    pub reasons: Vec<Reason>,
}

/// Number of steps that a recommended setup must run. The first creates the optimizer's states, and blocks that the
/// second leaves behind have been seen to get in the way of the third.
const STEPS: u64 = 4;
/// Number of candidates that are replayed before the recommendation gives up.
const MOST_PLAYED: usize = 24;

/// Replays candidates through the allocator within a limit.
pub struct Judge<'a> {
    /// The search space.
    pub space: &'a Space,
    /// The card.
    pub device: Option<&'static Device>,
    /// Rates and measured kernels, to estimate the time of a step.
    pub costs: Option<&'a Costs<'a>>,
    /// Bytes that the allocator may reserve.
    pub limit: Bytes,
}

impl Judge<'_> {
    /// Returns the found setup that is closest to the asked one, then fastest, and that trains in every order of
    /// segments tried. A candidate that does not fit because of fragmentation is tried again with a smaller
    /// micro-batch.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn recommend(&self, found: &Found) -> Result<Option<Recommended>, SimulateError> {
        let mut waiting: Vec<(Candidate, Option<Settled>)> = found
            .fitting
            .iter()
            .map(|candidate| (candidate.clone(), None))
            .collect();
        sort_by(&mut waiting, |a, b| order(&a.0, &b.0));
        waiting.truncate(8 * MOST_PLAYED);
        for _ in 0..MOST_PLAYED {
            if waiting.is_empty() {
                break;
            }
            let (candidate, settled) = waiting.remove(0);
            if let Some(settled) = settled {
                let reasons = reasons(self, &settled.candidate)?;
                return Ok(Some(Recommended { settled, reasons }));
            }
            let Some(settled) = self.settle(&candidate)? else {
                continue;
            };
            let at = waiting.partition_point(|(other, _)| order(other, &settled.candidate).is_lt());
            waiting.insert(at, (settled.candidate.clone(), Some(settled)));
        }
        Ok(None)
    }

    /// Returns a candidate with the largest micro-batch of the space, up to its own, that trains; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn settle(&self, candidate: &Candidate) -> Result<Option<Settled>, SimulateError> {
        let batches = self.space.batches_of(candidate.parallel.as_ref());
        let Some(at) = batches.iter().position(|batch| *batch == candidate.setup.batch) else {
            return Ok(None);
        };
        // Step down in growing strides to a micro-batch that trains, then bisect.
        let (mut bad, mut good, mut stride) = (at + 1, None, 1);
        let mut at = Some(at);
        while let Some(tried) = at {
            match self.attempt(candidate, batches[tried])? {
                trial if trial.trains() => {
                    good = Some((tried, trial));
                    break;
                }
                _ => bad = tried,
            }
            at = if tried == 0 {
                None
            } else {
                Some(tried.saturating_sub(stride))
            };
            stride *= 2;
        }
        let Some((mut good, mut trial)) = good else {
            return Ok(None);
        };
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            match self.attempt(candidate, batches[middle])? {
                tried if tried.trains() => (good, trial) = (middle, tried),
                _ => bad = middle,
            }
        }
        let next = match batches.get(good + 1) {
            Some(&batch) => Some((batch, bad > good + 1 || self.attempt(candidate, batch)?.trains())),
            None => None,
        };
        Ok(Some(Settled {
            candidate: self.with_batch(candidate, batches[good])?,
            trial,
            next,
        }))
    }

    /// Replays the first steps of a candidate at a micro-batch: in a fresh process, with ascending addresses, and in
    /// every random order of segments.
    fn attempt(&self, candidate: &Candidate, batch: u64) -> Result<Trial, SimulateError> {
        let candidate = self.at_batch(candidate, batch);
        let recording = self.recording(&candidate)?;
        let options = Options {
            limit: Some(self.limit),
            ..Options::default()
        };
        let trial = attempt_recorded(&recording, &options, STEPS);
        if !trial.trains() {
            return Ok(trial);
        }
        Ok(stops_in_some_order(&recording, &options, STEPS).unwrap_or(trial))
    }

    /// A candidate with another micro-batch; its figures are still those of the old one.
    pub(super) fn at_batch(&self, candidate: &Candidate, batch: u64) -> Candidate {
        let mut other = candidate.clone();
        let accum = self.space.accum(batch, candidate.parallel.as_ref());
        (other.setup.batch, other.setup.accum) = (batch, accum);
        other
    }

    /// Records a candidate's run.
    pub(super) fn recording(&self, candidate: &Candidate) -> Result<Recording, SimulateError> {
        let gpu = self.device.and_then(Device::gpu).unwrap_or_default();
        let model = self.space.model(candidate.input);
        let setup = repeated_by(&candidate.setup, candidate.parallel.as_ref());
        let simulation = Simulation::new(model, &setup).gpu(gpu);
        simulation.parallel(candidate.parallel).record()
    }

    /// Records a candidate whose setup was changed, and returns it with its new memory and time.
    ///
    /// # Errors
    /// If it cannot be recorded.
    pub(super) fn figures(&self, candidate: &Candidate) -> Result<Candidate, SimulateError> {
        let gpu = self.device.and_then(Device::gpu).unwrap_or_default();
        let shared = Shared::of(self.device);
        let mut recorder = Recorder::new(gpu, self.costs, shared);
        let model = self.space.model(candidate.input);
        let (setup, parallel) = (&candidate.setup, candidate.parallel.as_ref());
        let whole = recorder.whole(model, setup, parallel)?;
        let time = whole.time.and_then(|[forward, backward, update]| {
            let update = Shared::of_update(parallel, update) + shared.paging(self.device, whole.paged);
            shared.step(parallel, [forward, backward], setup.accum, update, whole.trained)
        });
        Ok(Candidate {
            peak: whole.peak,
            time: time.map(Seconds::new),
            distance: distance_to(self.space, candidate.input, setup, parallel),
            ..candidate.clone()
        })
    }

    fn with_batch(&self, candidate: &Candidate, batch: u64) -> Result<Candidate, SimulateError> {
        if candidate.setup.batch == batch {
            return Ok(candidate.clone());
        }
        self.figures(&self.at_batch(candidate, batch))
    }
}
