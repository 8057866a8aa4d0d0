//! Recorded forwards and backwards, and recorded updates.

use super::count::{Counted, count};
use crate::setup::{Optimizer, Parallel};
use crate::simulate::{Notes, Recording, SimulateError, record_notes, record_parallel_notes};
use crate::tape::Gpu;
use crate::time::{Costs, seconds};
use crate::units::Bytes;
use crate::{Model, Setup};

use super::shared::Shared;

/// What an optimizer adds to a pass, and its update.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Update {
    /// Live bytes of its states.
    pub states: Bytes,
    /// Highest live bytes of the update itself.
    pub peak: Bytes,
    /// States that CUDA moves between host and card.
    pub paged: Bytes,
    /// Seconds of the update.
    pub time: Option<f64>,
    /// Bytes of what is trained, and of what travels between GPUs.
    pub trained: Bytes,
}

/// A whole step.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Whole {
    /// Highest live bytes.
    pub peak: Bytes,
    /// Seconds of forward, backward and update.
    pub time: Option<[f64; 3]>,
    /// States that CUDA moves between host and card.
    pub paged: Bytes,
    /// Bytes of what is trained.
    pub trained: Bytes,
}

/// Live bytes, seconds of each phase, and bytes of paged states and of what is trained.
type Recorded = (Counted, Option<[f64; 3]>, [Bytes; 2]);

/// Where recordings come from.
pub(in crate::plan) struct Recorder<'a> {
    pub gpu: Gpu,
    pub costs: Option<&'a Costs<'a>>,
    /// Recordings so far.
    pub recorded: usize,
}

/// The setup with at most two micro-batches a step: with gradients there from the one before, all later ones hold the
/// same bytes.
pub(in crate::plan) fn repeated(setup: &Setup) -> Setup {
    Setup {
        accum: setup.accum.min(2),
        ..setup.clone()
    }
}

/// The same without states of an optimizer.
fn without_states(setup: &Setup) -> Setup {
    repeated(&Setup {
        optim: Optimizer::Sgd,
        ..setup.clone()
    })
}

impl Recorder<'_> {
    /// Highest live bytes of a setup's forward and backward, without the states of an optimizer.
    pub fn peak(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Bytes, SimulateError> {
        Ok(self.counted(model, &without_states(setup), parallel)?.pass)
    }

    /// Seconds of one micro-batch's forward and backward; nothing where the card's rates are not known.
    pub fn passes(&mut self, model: &Model, setup: &Setup) -> Option<[f64; 2]> {
        let costs = self.costs?;
        let [forward, backward, _] = seconds(&self.work(model, &without_states(setup)).ok()?, costs);
        Some([forward, backward])
    }

    /// A whole step of a setup.
    pub fn whole(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Whole, SimulateError> {
        self.record(model, &repeated(setup), parallel)
            .map(|(counted, time, [paged, trained])| Whole {
                peak: counted.pass.max(counted.update),
                time,
                paged,
                trained,
            })
    }

    /// The update of a setup, which depends on what is trained and in what types, not on samples; `bare` is what lives
    /// without states.
    pub fn update(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
        bare: Bytes,
    ) -> Result<Update, SimulateError> {
        let (counted, time, [paged, trained]) = self.record(model, setup, parallel)?;
        Ok(Update {
            states: counted.end.saturating_sub(bare),
            peak: counted.update,
            paged,
            time: time.map(|[.., update]| Shared::of_update(parallel, update)),
            trained,
        })
    }

    /// Live bytes once a step without states is over.
    pub fn bare(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Bytes, SimulateError> {
        Ok(self.counted(model, setup, parallel)?.end)
    }

    /// One run with its time.
    fn record(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Recorded, SimulateError> {
        let run = self.work(model, setup)?;
        let counted = match parallel {
            None => count(&run),
            Some(_) => self.counted(model, setup, parallel)?,
        };
        let time = self.costs.map(|costs| seconds(&run, costs));
        let trained = run.parameters.iter().filter(|(_, trained)| *trained);
        let trained = trained
            .map(|&(id, _)| Bytes::new(run.log.births[id as usize].bytes))
            .sum();
        Ok((counted, time, [run.paged, trained]))
    }

    /// A run on one GPU, with what GPU and host do where that has a price.
    fn work(&mut self, model: &Model, setup: &Setup) -> Result<Recording, SimulateError> {
        self.recorded += 1;
        let notes = Notes {
            work: self.costs.is_some(),
            sums: true,
        };
        record_notes(model, setup, self.gpu, notes)
    }

    fn counted(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Counted, SimulateError> {
        self.recorded += 1;
        let notes = Notes {
            work: false,
            sums: true,
        };
        Ok(count(&match parallel {
            None => record_notes(model, setup, self.gpu, notes)?,
            Some(parallel) => record_parallel_notes(model, setup, parallel, self.gpu, notes)?,
        }))
    }
}
