use super::change::Change;
use super::search::{Candidate, Found, repeated};
use super::speed;
use crate::allocator::Options;
use crate::device::Device;
use crate::simulate::{SimulateError, Trial, attempt, record_checked, simulate_on};
use crate::tape::Gpu;
use crate::units::Bytes;
use crate::{Model, Setup};

/// A setup that trains within the room, played through the allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommended {
    /// The setup and its figures.
    pub candidate: Candidate,
    /// Its first steps under the limit.
    pub trial: Trial,
    /// What differs from what was asked, each with what it does.
    pub reasons: Vec<Reason>,
}

/// One change of what was asked: the difference to the recommended setup without it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// The entry, by its name in a case.
    pub key: &'static str,
    /// What was asked.
    pub from: String,
    /// What is recommended.
    pub to: String,
    /// Bytes less (or more) at the peak.
    pub saves: Option<i64>,
    /// Estimated seconds more (or less) for a step.
    pub costs: Option<f64>,
}

/// Steps that a recommended setup has to run.
const STEPS: u64 = 4;
/// Candidates that are played through the allocator before the search gives up.
const MOST_PLAYED: usize = 24;

/// Of the setups that a search found, the one nearest to what was asked, then the fastest, that trains under `limit`.
///
/// # Errors
/// The first error of a simulation.
pub fn recommend(
    model: &Model,
    asked: &Setup,
    found: &Found,
    device: Option<&'static Device>,
    limit: Bytes,
) -> Result<Option<Recommended>, SimulateError> {
    let gpu = device.and_then(Device::gpu).unwrap_or_default();
    let mut candidates: Vec<&Candidate> = found.fitting.iter().collect();
    candidates.sort_by(|a, b| {
        let seconds = |c: &Candidate| c.time.map_or(0.0, |time| time.get());
        let times = seconds(a).total_cmp(&seconds(b));
        a.distance.cmp(&b.distance).then(times).then(a.peak.cmp(&b.peak))
    });
    let options = Options {
        limit: Some(limit),
        ..Options::default()
    };
    for candidate in candidates.into_iter().take(MOST_PLAYED) {
        let trial = attempt(model, &repeated(&candidate.setup), gpu, &options, STEPS)?;
        if trial.trains() {
            return Ok(Some(Recommended {
                candidate: candidate.clone(),
                trial,
                reasons: reasons(model, asked, &candidate.setup, (gpu, device))?,
            }));
        }
    }
    Ok(None)
}

/// Each entry that differs, with the setup in which it alone is as asked.
fn reasons(
    model: &Model,
    asked: &Setup,
    setup: &Setup,
    (gpu, device): (Gpu, Option<&'static Device>),
) -> Result<Vec<Reason>, SimulateError> {
    let peak = simulate_on(model, &repeated(setup), gpu)?.peak_allocated;
    let seconds = |setup: &Setup| {
        let recording = record_checked(model, &repeated(setup), gpu).ok()?;
        Some(speed::step(&recording, device?)?.of_step(setup.accum).get())
    };
    let now = seconds(setup);
    let pairs = [
        (Change::Precision(asked.precision), Change::Precision(setup.precision)),
        (Change::Optim(asked.optim), Change::Optim(setup.optim)),
        (Change::Freeze(asked.freeze), Change::Freeze(setup.freeze)),
        (Change::Ckpt(asked.ckpt), Change::Ckpt(setup.ckpt)),
        (Change::Loss(asked.loss), Change::Loss(setup.loss)),
        (Change::Batch(asked.batch), Change::Batch(setup.batch)),
    ];
    let changed = pairs.into_iter().filter(|(from, to)| from != to);
    let reason = |(from, to): (Change, Change)| {
        let mut without = from.apply(setup);
        if let Change::Batch(batch) = from {
            without.accum = (setup.batch * setup.accum / batch).max(1);
        }
        let saves = simulate_on(model, &repeated(&without), gpu).ok();
        Reason {
            key: to.key(),
            from: from.value(),
            to: to.value(),
            saves: saves.map(|report| report.peak_allocated.difference_to(peak)),
            costs: now.zip(seconds(&without)).map(|(now, without)| now - without),
        }
    };
    Ok(changed.map(reason).collect())
}
