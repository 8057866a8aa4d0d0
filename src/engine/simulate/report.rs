//! Makes a report of a recorded and replayed run.

use super::replay::Replay;
use super::steps::{Recording, StepMarks};
use crate::report::{Breakdown, Phase, Recorded, Report, Timeline};

/// Makes the report of the run's last step, without warnings.
pub(super) fn report(recording: Recording, replay: Replay) -> Report {
    let steady = replay.steps[2];
    let timeline = Timeline::new(Recorded {
        phases: phases(&recording.steady.marks),
        log: recording.log,
        events: recording.steady.events,
        initial: replay.initial,
        block_bytes: replay.block_bytes,
        peak: replay.peak,
        parameters: recording.parameters,
    });
    let peak_allocated = steady.peak();
    let peak_reserved = replay
        .reserved
        .iter()
        .map(|layout| layout.bytes)
        .max()
        .unwrap_or_default();
    Report {
        params: recording.params,
        trainable: recording.trainable,
        after_model: replay.after_model,
        first: replay.steps[0],
        steady,
        peak_allocated,
        peak_reserved,
        reserved: replay.reserved,
        fragmentation: peak_reserved.saturating_sub(peak_allocated),
        paged: recording.paged,
        peak_phase: steady.peak_phase(),
        breakdown: Breakdown::of(&timeline),
        timeline,
        outputs: None,
        is_compiled: false,
        warnings: Vec::new(),
    }
}

fn phases(marks: &StepMarks) -> Vec<(Phase, usize)> {
    vec![
        (Phase::Forward, marks.before_forward),
        (Phase::Backward, marks.after_forward),
        (Phase::Optimizer, marks.after_backward),
    ]
}
