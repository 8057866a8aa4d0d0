//! Runs the engine on a case and returns its report.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::{Recording, simulate_recorded};
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model, Report, Setup, SimulateError, Simulation};
use vramscope_time::{Clock, Milliseconds, TimedRun};

use crate::failure::Failure;
use crate::input::hub::Names;

/// Simulates a setup of a model on a GPU, or on each of several.
///
/// # Errors
/// If the engine refuses the setup. Also if it panics, which is a bug of the engine but must not stop the remaining
/// cases of a file.
pub fn predict(model: &Model, setup: &Setup, parallel: Option<&Parallel>, gpu: Gpu) -> Result<Report, Failure> {
    guarded(|| simulation(model, setup, parallel, gpu).run())
}

fn simulation<'a>(model: &'a Model, setup: &'a Setup, parallel: Option<&Parallel>, gpu: Gpu) -> Simulation<'a> {
    Simulation::new(model, setup).gpu(gpu).parallel(parallel.copied())
}

/// Records a setup's run on a GPU, or on each of several.
///
/// # Errors
/// If the engine refuses the setup, or panics.
pub fn record_run(model: &Model, setup: &Setup, parallel: Option<&Parallel>, gpu: Gpu) -> Result<Recording, Failure> {
    guarded(|| simulation(model, setup, parallel, gpu).record())
}

/// Simulates a setup; `None` if PyTorch's address space has no room for the run.
///
/// # Errors
/// Those of [`predict`], but for that.
pub fn predict_if_there_is_room(
    model: &Model,
    setup: &Setup,
    parallel: Option<&Parallel>,
    gpu: Gpu,
) -> Result<Option<Report>, Failure> {
    guarded(|| match simulation(model, setup, parallel, gpu).run() {
        Err(SimulateError::OutOfMemory(_)) => Ok(None),
        report => report.map(Some),
    })
}

/// Simulates a setup and computes the time of its step from the same recording.
///
/// # Errors
/// Those of [`predict`].
pub fn predict_timed<T>(
    model: &Model,
    (setup, parallel): (&Setup, Option<&Parallel>),
    (clock, gpu): (&Clock, Gpu),
    time: impl FnOnce(&mut TimedRun<'_>) -> T,
) -> Result<(Report, T), Failure> {
    guarded(|| {
        let mut run = TimedRun::record(model, setup, parallel, gpu, clock.network())?;
        let time = time(&mut run);
        let report = simulate_recorded(model, (setup, parallel), (run.into_recording(), gpu))?;
        Ok((report, time))
    })
}

/// Calls the engine and catches panics.
///
/// # Errors
/// Those of [`predict`].
pub fn guarded<T>(ask: impl FnOnce() -> Result<T, SimulateError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(ask)) {
        Ok(answer) => answer.map_err(Failure::input),
        Err(_) => Err(Failure::Broken(
            "internal error in the engine; please report this setup".into(),
        )),
    }
}

/// Simulates a case on a GPU, and estimates the time of its phases if a clock is given.
///
/// # Errors
/// Those of [`predict`], or if the case's model is unknown.
pub fn predict_case(
    case: &Case,
    names: &Names,
    gpu: Gpu,
    clock: Option<&Clock>,
) -> Result<(Report, Option<Milliseconds>), Failure> {
    let model = names.model(case)?;
    let (setup, parallel) = (&case.setup, case.parallel.as_ref());
    let Some(clock) = clock.filter(|_| setup.is_timed()) else {
        return Ok((predict(&model, setup, parallel, gpu)?, None));
    };
    predict_timed(&model, (setup, parallel), (clock, gpu), |run| {
        Some(run.time(&clock.costs()).parallel_time.milliseconds())
    })
}
