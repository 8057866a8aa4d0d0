use super::reason::{Reason, reasons};
use super::search::{Candidate, Found, Recorder, Shared, Space, distance_to, order, repeated_by};
use vramscope_engine::allocator::Options;
use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by;
use vramscope_engine::simulate::{
    Recording, SimulateError, Trial, attempt_recorded, record_checked, record_parallel, stops_in_some_order,
};
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_time::Costs;

/// A setup that trains within the room, played through the allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The setup and its figures.
    pub candidate: Candidate,
    /// Its first steps under the limit.
    pub trial: Trial,
    /// The next larger micro-batch, where the search knows one, and whether it trains.
    pub next: Option<(u64, bool)>,
}

/// The setup that is recommended.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommended {
    /// The setup, played.
    pub settled: Settled,
    /// What differs from what was asked, each with what it does.
    pub reasons: Vec<Reason>,
}

/// Steps that a recommended setup has to run: the first makes the states, and what the second leaves behind has
/// been in the way of the third.
const STEPS: u64 = 4;
/// Candidates that are played through the allocator before the search gives up.
const MOST_PLAYED: usize = 24;

/// Plays candidates through the allocator under a limit.
pub struct Judge<'a> {
    /// What was searched.
    pub space: &'a Space,
    /// The card.
    pub device: Option<&'static Device>,
    /// What tells the time of a step.
    pub costs: Option<&'a Costs<'a>>,
    /// What the allocator may reserve.
    pub limit: Bytes,
}

impl Judge<'_> {
    /// Of the setups that a search found, the one nearest to what was asked, then the fastest, that trains in every
    /// order of segments that is tried. A candidate whose pieces do not fit under the limit goes on with a smaller
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

    /// A candidate with the largest micro-batch of the space, up to its own, that trains; nothing where none does.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn settle(&self, candidate: &Candidate) -> Result<Option<Settled>, SimulateError> {
        let batches = self.space.batches_of(candidate.parallel.as_ref());
        let Some(at) = batches.iter().position(|batch| *batch == candidate.setup.batch) else {
            return Ok(None);
        };
        // Down in growing strides to one that trains, then between.
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

    /// The first steps of a candidate at a micro-batch: in a fresh process, with ascending addresses, and in every
    /// drawn order of segments.
    fn attempt(&self, candidate: &Candidate, batch: u64) -> Result<Trial, SimulateError> {
        let mut candidate = candidate.clone();
        let accum = self.space.accum(batch, candidate.parallel.as_ref());
        (candidate.setup.batch, candidate.setup.accum) = (batch, accum);
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

    /// A candidate's recorded run.
    pub(super) fn recording(&self, candidate: &Candidate) -> Result<Recording, SimulateError> {
        let gpu = self.device.and_then(Device::gpu).unwrap_or_default();
        let model = self.space.model(candidate.input);
        let setup = repeated_by(&candidate.setup, candidate.parallel.as_ref());
        match &candidate.parallel {
            None => record_checked(model, &setup, gpu),
            Some(parallel) => record_parallel(model, &setup, parallel, gpu),
        }
    }

    /// The figures of a candidate whose setup is another: recorded anew.
    ///
    /// # Errors
    /// When it cannot be recorded.
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
        let mut other = candidate.clone();
        let accum = self.space.accum(batch, candidate.parallel.as_ref());
        (other.setup.batch, other.setup.accum) = (batch, accum);
        self.figures(&other)
    }
}
