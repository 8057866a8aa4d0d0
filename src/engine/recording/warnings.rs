//! Warnings about a recorded run, each with a remedy.

use super::run::RecordedRun;
use crate::report::{Severity, Warning};

/// Version of PyTorch that the rules of kernels follow.
const PYTORCH: &str = "2.11";

/// Returns the warnings that follow from the recording itself.
pub(super) fn warnings(run: &RecordedRun) -> Vec<Warning> {
    let own = [
        one_step(run),
        skipped(run),
        other_pytorch(run),
        unknown(run),
        untimed(run),
    ];
    own.into_iter().flatten().chain(assumed(run)).collect()
}

fn one_step(run: &RecordedRun) -> Option<Warning> {
    (run.steps.len() == 1).then(|| Warning {
        code: "recording-one-step".into(),
        severity: Severity::Warning,
        message:
            "The recording holds one step, in which the optimizer makes its states: later steps hold them from their \
                  beginning. Record at least two steps (--steps 2) to see what those need."
                .into(),
        args: Vec::new(),
    })
}

fn skipped(run: &RecordedRun) -> Option<Warning> {
    let updated = run.steps.last().is_some_and(|step| !step.optimizers.is_empty());
    (!updated).then(|| Warning {
        code: "recording-no-update".into(),
        severity: Severity::Warning,
        message:
            "No optimizer ran in the last step of the recording: its states and temporaries are not counted. Record \
                  to the end of an update."
                .into(),
        args: Vec::new(),
    })
}

fn other_pytorch(run: &RecordedRun) -> Option<Warning> {
    let version = run.about.header.versions.get("torch")?;
    let same = version
        .strip_prefix(PYTORCH)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    (!same).then(|| Warning {
        code: "recording-other-pytorch".into(),
        severity: Severity::Note,
        message: format!(
            "The recording was made with PyTorch {version}; what kernels take inside follows PyTorch {PYTORCH}. Record \
             with {PYTORCH} where a few MiB matter."
        ),
        args: vec![("version".into(), version.clone()), ("rules".into(), PYTORCH.into())],
    })
}

fn unknown(run: &RecordedRun) -> Option<Warning> {
    let most = run.about.unknown.iter().max_by_key(|(_, count)| *count)?;
    let names: Vec<&str> = run.about.unknown.iter().map(|(name, _)| *name).take(8).collect();
    let (names, count) = (names.join(", "), most.1);
    Some(Warning {
        code: "recording-unknown-workspace".into(),
        severity: Severity::Warning,
        message: format!(
            "Kernels of {names} take workspaces that no rule tells (up to {count} calls): they are not counted. Leave some \
             room, or measure one step on a GPU."
        ),
        args: vec![("operations".into(), names), ("count".into(), count.to_string())],
    })
}

fn untimed(run: &RecordedRun) -> Option<Warning> {
    let count: u64 = run.about.untimed.iter().map(|(_, count)| *count).sum();
    let names: Vec<&str> = run.about.untimed.iter().map(|(name, _)| *name).take(8).collect();
    let (names, count) = (names.join(", "), count.to_string());
    (!names.is_empty()).then(|| Warning {
        code: "recording-untimed".into(),
        severity: Severity::Note,
        message: format!(
            "Of {names} ({count} calls) only the memory that they read and write is known: the step takes at least the time \
             that is told."
        ),
        args: vec![("operations".into(), names), ("count".into(), count)],
    })
}

fn assumed(run: &RecordedRun) -> impl Iterator<Item = Warning> {
    run.about.assumed.iter().map(|assumed| {
        let (what, how) = (assumed.what.clone(), assumed.how.clone());
        Warning {
            code: "recording-assumed".into(),
            severity: Severity::Note,
            message: format!(
                "`{what}` depends on values that nobody knows without running the model ({} times); the recording takes: \
                 {how}. A real run may differ there.",
                assumed.count
            ),
            args: vec![
                ("what".into(), what),
                ("how".into(), how),
                ("count".into(), assumed.count.to_string()),
            ],
        }
    })
}
