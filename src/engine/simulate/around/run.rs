//! A run whose surroundings are asked for.

use super::super::SimulateError;
use crate::dtype::DType;
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

    pub(super) fn is(&self, strategy: Strategy) -> bool {
        self.parallel.is_some_and(|parallel| parallel.strategy == strategy)
    }
}

/// A run whose surroundings are asked for.
pub(super) struct Run<'a> {
    pub model: &'a Model,
    pub setup: &'a Setup,
    pub gpu: Gpu,
    pub beside: Beside<'a>,
}

impl Run<'_> {
    /// Returns true if the run trains adapters.
    pub const fn adapts(&self) -> bool {
        matches!(self.setup.freeze, Freeze::Lora | Freeze::Qlora)
    }

    /// The setup of the same weights in a script of one's own.
    pub fn plain(&self) -> Setup {
        Setup {
            trainer: TrainerKind::Loop,
            ema: false,
            ..self.setup.clone()
        }
    }

    /// The setup of the same weights, loaded with `device_map` as TRL does.
    pub fn loaded(&self) -> Setup {
        Setup {
            trainer: TrainerKind::TrlSft,
            ..self.plain()
        }
    }
}

/// Returns an error if the run stops while it is made.
pub(super) fn stops(failure: Option<Failure>) -> Result<(), SimulateError> {
    failure.map_or(Ok(()), |failure| Err(SimulateError::Fails(failure)))
}
