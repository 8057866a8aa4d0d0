//! Simulates what surrounds the steps of a run: loading the model, merging its adapters, saving it, and the host's memory.

mod gather;
mod host;
mod loads;
mod merge;
mod quantised;
mod run;
mod script;

use super::SimulateError;
use super::check::check;
use crate::report::{Around, OnCard};
use crate::setup::{Freeze, Strategy};
use crate::tape::Gpu;
use crate::{Model, Setup};
use run::Run;

pub use run::Beside;

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
    let mut card = ways_to_load(&run)?;
    card.extend(merge::merge(&run)?);
    card.extend(gather::gather(&run));
    let host = host::host(&run, &card);
    Ok(Around { card, host })
}

/// Ways in which the model can be loaded, the run's own first.
fn ways_to_load(run: &Run<'_>) -> Result<Vec<OnCard>, SimulateError> {
    if run.setup.freeze == Freeze::Qlora {
        return Ok(vec![quantised::load(run)?]);
    }
    if let Some(parallel) = run.beside.parallel
        && parallel.strategy == Strategy::Deepspeed3
    {
        return Ok(vec![loads::partitioned(run, parallel)?]);
    }
    let mut ways = vec![loads::moved(run)?, loads::mapped(run)?];
    if run.setup.precision.weights().is_half() {
        ways.push(loads::cast(run)?);
    }
    // TRL gives `device_map`; scripts and `Trainer` move the model.
    if run.setup.trainer.is_trl() {
        ways.swap(0, 1);
    }
    Ok(ways)
}
