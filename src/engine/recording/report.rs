//! Reports of recorded runs.

use super::error::RecordingError;
use super::replay::{Asked, Replay, replay};
use super::run::{About, RecordedRun};
use super::warnings::warnings;
use crate::report::{Breakdown, Phase, Recorded, Report, Timeline};
use crate::units::Bytes;

/// Report of a replayed run.
pub struct Played {
    /// Description of the recorded run.
    pub about: About,
    /// Memory of its last step.
    pub report: Report,
    /// Answers to the script's questions about memory, in order.
    pub asked: Vec<Asked>,
}

/// Replays a run through the allocator and reports its last step; if its steps took the batches of several of the run's,
/// the one that needs the most memory. Reserved bytes are of all its steps.
///
/// # Errors
/// If the allocator refuses a request, which does not happen without a limit.
pub fn report(mut run: RecordedRun) -> Result<Played, RecordingError> {
    let replay = replay_to_deciding_batch(&mut run)?;
    let (Some(first), Some(steady), Some(step)) = (replay.steps.first(), replay.steps.last(), run.steps.last()) else {
        return Err(RecordingError::NoStep);
    };
    let (first, steady) = (*first, *steady);
    let within = |at: usize| at - step.begin;
    let phases = vec![
        (Phase::Forward, within(step.before_forward)),
        (Phase::Backward, within(step.after_forward)),
        (Phase::Optimizer, within(step.after_backward)),
    ];
    let warned = warnings(&run);
    let timeline = Timeline::new(Recorded {
        phases,
        events: run.events[step.begin..step.end].to_vec(),
        log: run.log,
        initial: replay.initial,
        block_bytes: replay.block_bytes,
        peak: replay.peak,
        parameters: run.parameters,
    });
    let (peak_allocated, highest) = (steady.peak(), replay.reserved.iter().map(|layout| layout.bytes).max());
    let peak_reserved = highest.unwrap_or_default();
    let mut report = Report {
        params: run.params,
        trainable: run.trainable,
        after_model: replay.after_model,
        first,
        steady,
        peak_allocated,
        peak_reserved,
        reserved: replay.reserved,
        fragmentation: peak_reserved.saturating_sub(peak_allocated),
        paged: Bytes::ZERO,
        peak_phase: steady.peak_phase(),
        breakdown: Breakdown::of(&timeline),
        timeline,
        outputs: None,
        is_compiled: false,
        warnings: Vec::new(),
    };
    report.warnings = crate::simulate::report_warnings(&report);
    report.warnings.extend(warned);
    Ok(Played {
        about: run.about,
        report,
        asked: replay.asked,
    })
}

/// Replays a run; if its steps took the batches of several of the run's, only up to the step whose batch needs the most
/// memory, which becomes the last. Reserved bytes stay those of all steps.
fn replay_to_deciding_batch(run: &mut RecordedRun) -> Result<Replay, RecordingError> {
    let replayed = |run: &RecordedRun| replay(run).map_err(|error| RecordingError::Setting(error.to_string()));
    let mut replay = replayed(run)?;
    let Some(batches) = &mut run.about.batches else {
        return Ok(replay);
    };
    batches.steps.truncate(replay.steps.len());
    for (batch, figures) in batches.steps.iter_mut().zip(&replay.steps) {
        batch.peak_allocated = figures.peak();
    }
    // Of equal ones the last: the steps before it have left what steps leave.
    let highest = (0..replay.steps.len()).max_by_key(|&step| replay.steps[step].peak());
    batches.decides = highest.unwrap_or_default();
    if batches.decides + 1 < replay.steps.len() {
        let decides = batches.decides;
        run.cut_after(decides);
        let reserved = std::mem::take(&mut replay.reserved);
        replay = replayed(run)?;
        replay.reserved = reserved;
    }
    Ok(replay)
}
