//! Finds the largest micro-batch that trains within a memory limit.

mod search;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use vramscope_engine::allocator::Options;
use vramscope_engine::simulate::{
    Change, ORDERS, Recording, SimulateError, Trial, attempt_recorded, record_checked, stops_in_orders,
};
use vramscope_engine::tape::Gpu;
use vramscope_engine::units::Bytes;
use vramscope_engine::{Model, Setup};

pub(crate) use search::Search;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum End {
    /// The next larger batch cannot run with any amount of memory.
    #[error("{0}")]
    Refused(SimulateError),
    /// The search ends at [`MOST`] samples.
    #[error("no more than {MOST} samples are tried")]
    Most,
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
pub(crate) const ORDERS_A_STEP: u64 = 6;

impl Batches {
    /// Starts a search; `limit` and `steps` are those of [`max_batch`].
    ///
    /// # Errors
    /// If the lengths of the samples determine the batch.
    pub fn new(model: Model, setup: Setup, gpu: Gpu, (limit, steps): (Bytes, u64)) -> Result<Self, SimulateError> {
        if !setup.lengths.is_empty() {
            return Err(SimulateError::LengthsDecide);
        }
        if setup.compile {
            return Err(SimulateError::NotSimulated {
                model: model.name,
                given: "`compile` in a search for the largest batch".into(),
                ways: vec![Change::leave_out("compile")],
            });
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
