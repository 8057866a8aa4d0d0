//! Makes a report of a recorded and replayed run.

use std::collections::HashMap;
use std::sync::Arc;

use super::replay::Replay;
use super::steps::{Recording, StepMarks};
use crate::report::{LiveTensor, Phase, Report, Timeline, breakdown};
use crate::tape::Kind;
use crate::tape::log::{Birth, Event};
use crate::units::Bytes;

/// The report of the run's last step.
pub(super) fn report(recording: &Recording, replay: &Replay) -> Report {
    let steady = replay.steps[2];
    let timeline = timeline(recording, replay);
    let peak = timeline.peak_instant();
    let live: Vec<LiveTensor> = timeline.live_at(peak).into_iter().cloned().collect();
    let peak_allocated = steady.peak();
    let peak_reserved = Bytes::new(replay.peak_reserved);
    Report {
        params: recording.params,
        trainable: recording.trainable,
        after_model: Bytes::new(replay.after_model),
        first: replay.steps[0],
        steady,
        peak_allocated,
        peak_reserved,
        fragmentation: peak_reserved.saturating_sub(peak_allocated),
        peak_phase: steady.peak_phase(),
        breakdown: breakdown(&live),
        timeline,
        warnings: Vec::new(),
    }
}

/// The steady step as a timeline; tensors that are neither live before it nor touched by
/// it are left out.
fn timeline(recording: &Recording, replay: &Replay) -> Timeline {
    let log = &recording.log;
    let mut live = vec![false; log.births.len()];
    for &event in recording.build.iter().chain(&recording.first.events) {
        live[event.storage() as usize] = event.is_birth();
    }
    let events = &recording.steady.events;
    let mut index = vec![u32::MAX; log.births.len()];
    let mut timeline = Timeline::default();
    let mut paths = vec![None; log.scopes.len()];
    let mut reasons = Reasons::default();
    let mut place = |id: usize, timeline: &mut Timeline| {
        if index[id] == u32::MAX {
            index[id] = timeline.tensors.len() as u32;
            let birth = &log.births[id];
            let scope = birth.scope as usize;
            timeline.tensors.push(LiveTensor {
                name: birth.name,
                layer: paths[scope]
                    .get_or_insert_with(|| Arc::<str>::from(log.path(birth.scope)))
                    .clone(),
                component: log.scopes[scope].component,
                kind: birth.kind,
                shape: birth.shape,
                dtype: birth.dtype,
                bytes: Bytes::new(replay.block_bytes[id]),
                why: reasons.of(birth),
            });
        }
        index[id]
    };
    for (id, _) in live.iter().enumerate().filter(|(_, l)| **l) {
        let at = place(id, &mut timeline);
        timeline.initial.push(at);
    }
    for event in events {
        let at = place(event.storage() as usize, &mut timeline);
        timeline.events.push((at, Event::is_birth(*event)));
    }
    timeline.phases = phases(&recording.steady.marks);
    timeline
}

fn phases(marks: &StepMarks) -> Vec<(Phase, usize)> {
    vec![
        (Phase::Forward, marks.before_forward),
        (Phase::Backward, marks.after_forward),
        (Phase::Optimizer, marks.after_backward),
    ]
}

/// Why tensors live, in words; one text for all that live for the same reason.
#[derive(Default)]
struct Reasons(HashMap<(bool, &'static str), Arc<str>>);

impl Reasons {
    fn of(&mut self, birth: &Birth) -> Arc<str> {
        let kept = birth.kind == Kind::Activation && birth.why.ends_with(|c: char| c.is_ascii_digit());
        let words = || match (kept, birth.why) {
            (true, node) => format!("kept from forward because {node} needs it in backward").into(),
            (false, "") if birth.kind == Kind::Input => "the batch, on the GPU until the step is done".into(),
            (false, "") => "lives until the operations that use it are done".into(),
            (false, why) => why.into(),
        };
        self.0.entry((kept, birth.why)).or_insert_with(words).clone()
    }
}
