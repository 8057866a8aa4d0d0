//! Recorded forwards and backwards, and recorded updates.

use super::count::{Counted, count};
use crate::setup::{Optimizer, Parallel};
use crate::simulate::{SimulateError, record_checked, record_parallel, record_work};
use crate::tape::Gpu;
use crate::time::{Costs, Phase, step};
use crate::units::Bytes;
use crate::{Model, Setup};

use super::shared::Shared;

/// Forward and backward at one micro-batch, without the states of an optimizer.
#[derive(Debug, Clone, Copy)]
pub(in crate::plan) struct Pass {
    /// Highest live bytes.
    pub peak: Bytes,
    /// Seconds of one micro-batch's forward and backward; nothing where the card's rates are not known.
    pub time: Option<[f64; 2]>,
}

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

impl Recorder<'_> {
    /// Forward and backward of a setup; its time where it fits in the room.
    pub fn pass(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
        room: Bytes,
    ) -> Result<Pass, SimulateError> {
        let setup = repeated(&Setup {
            optim: Optimizer::Sgd,
            ..setup.clone()
        });
        let (counted, time, _) = self.record(model, &setup, parallel, |counted| counted.pass <= room)?;
        Ok(Pass {
            peak: counted.pass,
            time: time.map(|time| [time[0], time[1]]),
        })
    }

    /// A whole step of a setup.
    pub fn whole(&mut self, model: &Model, setup: &Setup, parallel: Option<&Parallel>) -> Result<Whole, SimulateError> {
        self.record(model, &repeated(setup), parallel, |_| true)
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
        let (counted, time, [paged, trained]) = self.record(model, setup, parallel, |_| true)?;
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
        self.recorded += 1;
        let recording = match parallel {
            None => record_checked(model, setup, self.gpu)?,
            Some(parallel) => record_parallel(model, setup, parallel, self.gpu)?,
        };
        Ok(count(&recording).end)
    }

    /// One run; its time where `timed` says so.
    fn record(
        &mut self,
        model: &Model,
        setup: &Setup,
        parallel: Option<&Parallel>,
        timed: impl Fn(&Counted) -> bool,
    ) -> Result<Recorded, SimulateError> {
        self.recorded += 1;
        let run = match self.costs {
            Some(_) => record_work(model, setup, self.gpu)?,
            None => record_checked(model, setup, self.gpu)?,
        };
        let counted = match parallel {
            None => count(&run),
            Some(parallel) => count(&record_parallel(model, setup, parallel, self.gpu)?),
        };
        let time = self.costs.filter(|_| timed(&counted)).map(|costs| {
            let time = step(&run, costs);
            Phase::ALL.map(|phase| time.phase(phase).total)
        });
        let trained = run.parameters.iter().filter(|(_, trained)| *trained);
        let trained = trained
            .map(|&(id, _)| Bytes::new(run.log.births[id as usize].bytes))
            .sum();
        Ok((counted, time, [run.paged, trained]))
    }
}
