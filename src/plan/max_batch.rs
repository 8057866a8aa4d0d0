//! Finds the largest micro-batch that trains within a memory limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use vramscope_engine::allocator::Options;
use vramscope_engine::simulate::{
    ORDERS, Recording, SimulateError, Trial, attempt_recorded, record_checked, stops_in_orders,
};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};

/// The largest micro-batch that trains within a limit of the allocator, and every batch that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxBatch {
    /// Samples per forward pass; 0 if not even one sample trains.
    pub max_batch: u64,
    /// Batches that were tried, in ascending order, with their outcomes.
    pub tries: Vec<(u64, Trial)>,
    /// Reason why no larger batch was tried, if that is not memory.
    pub end: Option<End>,
}

/// Reason, other than memory, why no larger batch was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The next larger batch cannot run with any amount of memory.
    Refused(SimulateError),
    /// The search ends at [`MOST`] samples.
    Most,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Most => write!(f, "no more than {MOST} samples are tried"),
        }
    }
}

/// Largest number of samples per micro-batch that is tried.
pub const MOST: u64 = 4096;

/// Finds the largest micro-batch of a setup that trains within `limit`; one sample more does not.
///
/// Every trial is a simulated run: creating the model, then `steps` steps, the first of which creates the optimizer's
/// states, through an allocator that frees cached segments before it runs out. A run close to the limit can pass two
/// steps and fail in the third, because of the blocks that those left behind. The batches to try follow from the
/// allocated peaks of earlier trials, which grow almost linearly: about five to ten runs find the answer.
///
/// Close to the limit, the order of the driver's addresses decides whether a batch finds room, so a batch can train in
/// one process and fail in the next. The answer is the largest batch that trains in every order tried: a fresh
/// process's, ascending addresses, and [`ORDERS`](vramscope_engine::simulate::ORDERS) random ones.
///
/// # Errors
/// If the lengths of the samples determine the batch, or if not even one sample can run with more memory.
pub fn max_batch(model: &Model, setup: &Setup, gpu: Gpu, limit: Bytes, steps: u64) -> Result<MaxBatch, SimulateError> {
    Batches::new(model.clone(), setup.clone(), gpu, (limit, steps))?.answer()
}

/// The search of [`max_batch`], one run at a time, for callers that must do other work in between.
pub struct Batches {
    model: Model,
    setup: Setup,
    gpu: Gpu,
    options: Options,
    steps: u64,
    search: Search,
    best: Option<Best>,
    orders_a_step: u64,
}

/// The largest batch known to train.
struct Best {
    batch: u64,
    recording: Recording,
    /// Number of random orders in which it has been tried.
    tried: u64,
}

/// Number of random orders that one step of [`Batches`] tries, small enough to keep the caller responsive.
const ORDERS_A_STEP: u64 = 6;

impl Batches {
    /// Starts a search; `limit` and `steps` are those of [`max_batch`].
    ///
    /// # Errors
    /// If the lengths of the samples determine the batch.
    pub fn new(model: Model, setup: Setup, gpu: Gpu, (limit, steps): (Bytes, u64)) -> Result<Self, SimulateError> {
        if !setup.lengths.is_empty() {
            return Err(SimulateError::LengthsDecide);
        }
        Ok(Self {
            model,
            setup,
            gpu,
            options: Options {
                limit: Some(limit),
                ..Options::default()
            },
            steps,
            search: Search::new(limit),
            best: None,
            orders_a_step: ORDERS_A_STEP,
        })
    }

    /// Runs the next trial; returns the answer if none is left.
    ///
    /// # Errors
    /// If not even one sample can run with more memory.
    pub fn step(&mut self) -> Result<Option<MaxBatch>, SimulateError> {
        if let Some(batch) = self.search.next() {
            self.attempt(batch)?;
            return Ok(None);
        }
        let good = self.search.good;
        if good == 0 {
            return Ok(Some(self.search.result()));
        }
        let best = match self.best.take() {
            Some(best) if best.batch == good => best,
            _ => Best {
                batch: good,
                recording: self.record(good)?,
                tried: 0,
            },
        };
        if !self.search.knows(good) {
            let trial = attempt_recorded(&best.recording, &self.options, self.steps);
            if !trial.trains() {
                self.search.step_down(trial);
                return Ok(None);
            }
            self.search.note(good, trial);
        }
        let orders = best.tried..(best.tried + self.orders_a_step).min(ORDERS);
        if let Some(stopped) = stops_in_orders(&best.recording, &self.options, self.steps, orders.clone()) {
            self.search.step_down(stopped);
            return Ok(None);
        }
        self.best = Some(Best {
            tried: orders.end,
            ..best
        });
        Ok((orders.end == ORDERS).then(|| self.search.result()))
    }

    /// Runs all remaining trials and returns the answer.
    ///
    /// # Errors
    /// Those of [`Batches::step`].
    pub fn answer(&mut self) -> Result<MaxBatch, SimulateError> {
        self.orders_a_step = ORDERS;
        loop {
            if let Some(found) = self.step()? {
                return Ok(found);
            }
        }
    }

    /// Continues after an answer: searches for the largest batch that trains for `steps` more steps, starting at that
    /// answer and going down.
    pub fn go_on(&mut self, steps: u64) {
        self.steps += steps;
        self.search.doubt();
        if let Some(best) = &mut self.best {
            best.tried = 0;
        }
    }

    /// The largest batch known to train and the smallest known not to.
    pub const fn between(&self) -> [u64; 2] {
        [self.search.good, self.search.bad]
    }

    fn record(&self, batch: u64) -> Result<Recording, SimulateError> {
        let setup = Setup {
            batch,
            ..self.setup.clone()
        };
        record_checked(&self.model, &setup, self.gpu)
    }

    fn attempt(&mut self, batch: u64) -> Result<(), SimulateError> {
        match self.record(batch) {
            Ok(recording) => {
                let trial = attempt_recorded(&recording, &self.options, self.steps);
                if trial.trains() {
                    self.best = Some(Best {
                        batch,
                        recording,
                        tried: 0,
                    });
                }
                self.search.note(batch, trial);
                Ok(())
            }
            Err(error) if batch == 1 => Err(error),
            Err(error) => {
                self.search.refuse(batch, error);
                Ok(())
            }
        }
    }
}

/// Interval between the largest batch that trains and the smallest that does not.
pub(crate) struct Search {
    limit: u64,
    good: u64,
    bad: u64,
    tries: Vec<(u64, Trial)>,
    end: Option<(u64, SimulateError)>,
}

impl Search {
    const fn new(limit: Bytes) -> Self {
        Self::within(limit, [1, MOST])
    }

    /// Of no batch below the first nor above the second of these.
    pub const fn within(limit: Bytes, [least, most]: [u64; 2]) -> Self {
        Self {
            limit: limit.get(),
            good: least.saturating_sub(1),
            bad: most + 1,
            tries: Vec::new(),
            end: None,
        }
    }

    /// The batch to try next: where the line through two allocated peaks meets the limit, or next to a known batch, or
    /// half-way.
    pub fn next(&self) -> Option<u64> {
        if self.bad - self.good <= 1 {
            return None;
        }
        let trained = self.trained();
        let guess = match trained[..] {
            [] => self.good + 1,
            [(one, _)] => 2 * one,
            [.., (before, low), (last, high)] => {
                let slope = high.saturating_sub(low) / (last - before);
                let more = self.limit.saturating_sub(high).checked_div(slope).unwrap_or(u64::MAX);
                // If another phase holds the peak, the peak only starts to grow at larger batches.
                last.saturating_add(more).min(8 * last)
            }
        };
        Some(match guess {
            // The line lies above the true peaks, but only slightly.
            _ if guess <= self.good => self.good + 1,
            _ if guess < self.bad => guess,
            // Usually just one sample is too many, because of fragmentation.
            _ if self.tries.iter().filter(|(_, trial)| !trial.trains()).count() <= 1 => self.bad - 1,
            _ => self.good + (self.bad - self.good) / 2,
        })
    }

    /// Batches that trained, in rising order, with their allocated peaks.
    pub fn trained(&self) -> Vec<(u64, u64)> {
        let trained = self.tries.iter().filter(|(_, trial)| trial.trains());
        trained
            .map(|(batch, trial)| (*batch, trial.peak_allocated.get()))
            .collect()
    }

    /// The largest batch that trains; one less than the least, where none does.
    pub const fn good(&self) -> u64 {
        self.good
    }

    /// Batches that were tried, in rising order.
    pub fn into_tries(self) -> Vec<(u64, Trial)> {
        self.tries
    }

    pub fn note(&mut self, batch: u64, trial: Trial) {
        if trial.trains() {
            self.good = batch;
        } else {
            self.bad = batch;
        }
        let at = self.tries.partition_point(|(other, _)| *other < batch);
        self.tries.insert(at, (batch, trial));
    }

    pub fn knows(&self, batch: u64) -> bool {
        self.tries.iter().any(|(other, _)| *other == batch)
    }

    /// Steps down: the largest batch failed after all, and the next smaller one may be the answer.
    pub fn step_down(&mut self, stopped: Trial) {
        let batch = self.good;
        self.tries.retain(|(other, _)| *other != batch);
        self.note(batch, stopped);
        self.good = batch - 1;
    }

    /// Discards successes, since a batch that trained may fail in later steps; failures remain failures.
    fn doubt(&mut self) {
        self.bad = self.good + 1;
        self.tries.retain(|(_, trial)| !trial.trains());
    }

    fn refuse(&mut self, batch: u64, error: SimulateError) {
        self.bad = batch;
        self.end = Some((batch, error));
    }

    fn result(&self) -> MaxBatch {
        let good = self.good;
        let refused = self.end.clone().filter(|(batch, _)| *batch == good + 1);
        let most = || (good == MOST).then_some(End::Most);
        MaxBatch {
            max_batch: good,
            tries: self.tries.clone(),
            end: refused.map(|(_, why)| End::Refused(why)).or_else(most),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Peak of a run that is constant up to some batch and linear beyond it.
    fn peak([floor, base, slope]: [u64; 3], batch: u64) -> u64 {
        floor.max(base + slope * batch)
    }

    fn searched(limit: u64, of: [u64; 3]) -> (u64, usize) {
        let mut search = Search::new(Bytes::new(limit));
        let mut asked = 0;
        while let Some(batch) = search.next() {
            asked += 1;
            let peak = peak(of, batch);
            let stopped = (peak > limit).then(|| vramscope_engine::simulate::Stopped {
                step: 1,
                phase: None,
                tensor: String::new(),
                error: vramscope_engine::allocator::OutOfMemory {
                    requested: Bytes::ZERO,
                    allocated: Bytes::ZERO,
                    reserved: Bytes::ZERO,
                    limit: Bytes::new(limit),
                },
                order: vramscope_engine::simulate::SegmentOrder::Fresh,
            });
            let trial = Trial {
                peak_allocated: Bytes::new(peak.min(limit)),
                peak_reserved: Bytes::new(peak.min(limit)),
                retries: 0,
                stopped,
            };
            search.note(batch, trial);
        }
        (search.result().max_batch, asked)
    }

    proptest! {
        #[test]
        fn it_is_what_a_linear_scan_finds(
            limit in 0u64..100_000, floor in 0u64..120_000, base in 0u64..50_000, slope in 1u64..3000,
        ) {
            let of = [floor, base, slope];
            let scanned = (1..=MOST).take_while(|&batch| peak(of, batch) <= limit).last().unwrap_or(0);
            let (found, asked) = searched(limit, of);
            prop_assert_eq!(found, scanned);
            prop_assert!(asked <= 24, "{} tries", asked);
        }
    }

    #[test]
    fn a_line_takes_few_tries() {
        assert_eq!(searched(1_000_000, [0, 200_000, 7_919]).0, 101);
        assert!(searched(1_000_000, [0, 200_000, 7_919]).1 <= 6);
    }

    #[test]
    fn more_steps_are_looked_at_from_the_answer_on() {
        let model = Model::from_catalogue("gpt2").unwrap();
        let mut goes_down = false;
        for mib in [1500, 2100, 3300] {
            for seq in [96, 200, 333] {
                let (limit, gpu) = (Bytes::mib(mib), Gpu::default());
                let setup = Setup {
                    seq,
                    ..Setup::default()
                };
                let mut batches = Batches::new(model.clone(), setup.clone(), gpu, (limit, 1)).unwrap();
                let first = batches.answer().unwrap();
                batches.go_on(5);
                let lasting = batches.answer().unwrap().max_batch;
                assert_eq!(lasting, max_batch(&model, &setup, gpu, limit, 6).unwrap().max_batch);
                goes_down |= lasting < first.max_batch;
            }
        }
        assert!(
            goes_down,
            "the first step makes no states of the optimizer beside gradients and activations"
        );
    }

    #[test]
    fn one_more_finds_no_room() {
        let model = Model::from_catalogue("gpt2").unwrap();
        let setup = Setup {
            seq: 64,
            ..Setup::default()
        };
        let found = max_batch(&model, &setup, Gpu::default(), Bytes::gib(8), 2).unwrap();
        let (batch, trial) = found.tries.iter().find(|(_, trial)| !trial.trains()).unwrap();
        assert_eq!(*batch, found.max_batch + 1);
        assert!(found.end.is_none());
        let stopped = trial.stopped.as_ref().unwrap();
        assert!(stopped.error.requested + stopped.error.reserved > Bytes::gib(8));
        assert!(!stopped.tensor.is_empty());
        let lengths = Setup {
            lengths: vec![3, 4],
            ..setup
        };
        assert!(max_batch(&model, &lengths, Gpu::default(), Bytes::gib(8), 2).is_err());
    }
}
