//! Simulates a model and a setup, from recording the step to the report.

mod around;
mod batching;
mod build;
mod change;
mod check;
mod concurrent;
mod count;
mod engine;
mod error;
mod fetched;
mod grid;
mod grpo;
mod grpo_generation;
mod grpo_options;
mod grpo_rollout;
mod inference;
mod labels;
mod large_pool;
mod lengths;
mod load;
mod losses;
mod micro_batches;
mod ms_swift;
mod options;
mod parallel;
mod parts;
mod pass;
mod peaks;
mod process_replay;
mod repeated;
mod replay;
mod replayer;
mod report;
mod samples;
mod sampling;
mod schedule;
mod side_by_side;
mod simulation;
mod steps;
mod storages;
mod trial;
mod trl;
mod unrolled;
mod unshared;
mod warnings;
mod way_out;
mod ways_out;
mod work;
mod wrapper;

use self::replay::Replay;
use crate::allocator::Options;
use crate::setup::Parallel;
use crate::tape::Gpu;
use crate::{Model, Report, Setup};

pub use crate::model::NoFlash;
pub use around::{Beside, around};
pub use build::{In4Bits, parameters, parameters_in_4_bits};
pub use count::{Counted, count};
pub use error::{Missing, SimulateError};
pub use inference::{Inference, InferenceAnswer, Passed, evaluate, generate};
pub use lengths::{after_many_lengths, many_lengths, reserved_over};
pub use parallel::units::{ROOT, Unit, Units};
pub use sampling::MOST_NEW_TOKENS;

pub use change::Change;
pub use parallel::{
    base_of_parts, can_share, can_train, distinct_stages, own as own_parameters, pipeline_stages,
    record_parallel_notes, shard, share, tensor_parts, work_of_one as parallel_work,
};
pub use parallel::{record_parallel, simulate_parallel};
pub use pass::{ModelShare, PassRecorder, record_update, record_update_input};
pub use pass::{Pass, PassWork, Update, UpdateInput};
pub use peaks::steady_bytes;
pub(crate) use replayer::Replayer;
pub use simulation::Simulation;
pub use steps::Share;
pub use steps::{Notes, Recording, Step, StepMarks, record, record_notes, record_work};
pub use trial::{
    ORDERS, SegmentOrder, Stopped, Trial, attempt, attempt_recorded, stops_in_orders, stops_in_some_order,
};
pub use unshared::Unshared;
pub use warnings::of_report as report_warnings;
pub use way_out::WayOut;
pub use ways_out::ways_out;
pub use work::Work;

/// Checks a setup and records its run, which must not fail for another reason than memory.
///
/// # Errors
/// Returns the errors of [`simulate`].
pub fn record_checked(model: &Model, setup: &Setup, gpu: Gpu) -> Result<Recording, SimulateError> {
    check::check(model, setup)?;
    let recording = record(model, setup, gpu);
    match &recording.failure {
        Some(failure) => Err(SimulateError::Fails(failure.clone())),
        None => Ok(recording),
    }
}

/// Simulates three training steps.
///
/// # Errors
/// When the setup does not fit the model (zero batch, text shorter than its image tokens, …), or
/// when the run itself would fail; the message says what to change.
pub fn simulate(model: &Model, setup: &Setup) -> Result<Report, SimulateError> {
    simulate_on(model, setup, Gpu::default())
}

/// Simulates three training steps on this GPU, which decides the kernels that run and their memory.
///
/// # Errors
/// Returns the errors of [`simulate`].
pub fn simulate_on(model: &Model, setup: &Setup, gpu: Gpu) -> Result<Report, SimulateError> {
    let (recording, replay) = concurrent::record_and_replay(model, setup, gpu)?;
    Ok(reported(model, setup, recording, replay))
}

/// Simulates training from a step that [`TimedRun::record`](vramscope_time::TimedRun::record) recorded: on one GPU as
/// [`simulate_on`], or on several as [`simulate_parallel`].
///
/// # Errors
/// When the allocator's limit is too small for the run, or the strategy is not simulated for what was recorded.
pub fn simulate_recorded(
    model: &Model,
    (setup, parallel): (&Setup, Option<&Parallel>),
    (recording, gpu): (Recording, Gpu),
) -> Result<Report, SimulateError> {
    let recording = match parallel {
        Some(parallel) => parallel::of_recorded(model, (setup, parallel), (recording, gpu))?,
        None => recording,
    };
    played(model, (setup, parallel), recording)
}

/// Replays a recorded run through the allocator and reports it.
fn played(
    model: &Model,
    (setup, parallel): (&Setup, Option<&Parallel>),
    recording: Recording,
) -> Result<Report, SimulateError> {
    let replay = replay::replay(&recording, &Options::default())?;
    let mut report = reported(model, setup, recording, replay);
    report.warnings.extend(parallel.and_then(warnings::streams));
    Ok(report)
}

/// Reports a run that was recorded and replayed.
fn reported(model: &Model, setup: &Setup, recording: Recording, replay: Replay) -> Report {
    let stages = warnings::stages(&recording.stages);
    let mut report = report::report(recording, replay);
    report.is_compiled = setup.compile;
    report.warnings = warnings::warnings(model, setup, &report);
    report.warnings.extend(stages);
    report
}
