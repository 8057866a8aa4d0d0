//! What a run takes around its steps: loading the model, merging its adapters, saving it, and the host's memory.

mod gather;
mod host;
mod loads;
mod merge;
mod quantised;
mod script;

use super::SimulateError;
use super::check::check;
use crate::dtype::DType;
use crate::report::{Around, OnCard};
use crate::setup::{Freeze, Parallel, Setup, Strategy, TrainerKind};
use crate::tape::{Failure, Gpu};
use crate::units::Bytes;
use crate::{Model, Report};

/// Facts about a run beside its model and setup.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// How several GPUs share the run.
    pub parallel: Option<&'a Parallel>,
    /// Type of the weights in the files.
    pub files: DType,
    /// Workers of the `DataLoader`.
    pub workers: u64,
    /// Allocated bytes of the card between two steps.
    pub between_steps: Bytes,
    /// Optimizer states that are paged.
    pub paged: Bytes,
}

impl<'a> Beside<'a> {
    /// What a report says of them.
    pub const fn of(report: &Report, model: &Model, parallel: Option<&'a Parallel>, workers: u64) -> Self {
        Self {
            parallel,
            files: model.files,
            workers,
            between_steps: report.steady.end,
            paged: report.paged,
        }
    }

    fn is(&self, strategy: Strategy) -> bool {
        self.parallel.is_some_and(|parallel| parallel.strategy == strategy)
    }
}

/// Simulates what happens around the steps of a run.
///
/// # Errors
/// Returns the errors of [`simulate`](super::simulate).
pub fn around(model: &Model, setup: &Setup, gpu: Gpu, beside: Beside<'_>) -> Result<Around, SimulateError> {
    check(model, setup)?;
    let run = Run {
        model,
        setup: &model.prepared(setup),
        gpu,
        beside,
    };
    let mut card = run.loads()?;
    card.extend(merge::merge(&run)?);
    card.extend(gather::gather(&run));
    let host = host::host(&run, &card);
    Ok(Around { card, host })
}

/// A run whose surroundings are asked for.
struct Run<'a> {
    model: &'a Model,
    setup: &'a Setup,
    gpu: Gpu,
    beside: Beside<'a>,
}

impl Run<'_> {
    /// Ways in which the model can be loaded, the run's own first.
    fn loads(&self) -> Result<Vec<OnCard>, SimulateError> {
        if self.setup.freeze == Freeze::Qlora {
            return Ok(vec![quantised::load(self)?]);
        }
        if let Some(parallel) = self.beside.parallel
            && parallel.strategy == Strategy::Deepspeed3
        {
            return Ok(vec![loads::partitioned(self, parallel)?]);
        }
        let mut ways = vec![loads::moved(self)?, loads::mapped(self)?];
        if self.setup.precision.weights().is_half() {
            ways.push(loads::cast(self)?);
        }
        // TRL gives `device_map`; scripts and `Trainer` move the model.
        if self.setup.trainer.is_trl() {
            ways.swap(0, 1);
        }
        Ok(ways)
    }

    /// Returns true if the run trains adapters.
    const fn adapts(&self) -> bool {
        matches!(self.setup.freeze, Freeze::Lora | Freeze::Qlora)
    }

    /// The setup of the same weights in a script of one's own.
    fn plain(&self) -> Setup {
        Setup {
            trainer: TrainerKind::Loop,
            ema: false,
            ..self.setup.clone()
        }
    }
}

/// Returns an error if the run stops while it is made.
fn stops(failure: Option<Failure>) -> Result<(), SimulateError> {
    failure.map_or(Ok(()), |failure| Err(SimulateError::Fails(failure)))
}
