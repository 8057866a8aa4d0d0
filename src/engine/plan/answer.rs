//! A plan as every face and script reads it.

use serde::{Deserialize, Serialize};

use super::ladder::{Ladder, Rung, ladder};
use super::recommend::{Judge, Settled};
use super::search::{Candidate, Decided, Found, front};
use crate::device::Device;
use crate::report::Phase;
use crate::setup::Parallel;
use crate::simulate::{SimulateError, simulate_on, simulate_parallel};
use crate::units::Bytes;
use crate::{Report, Setup};

/// Recommended setups for a model, a card and a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the model is called.
    pub model: String,
    /// The card, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// What PyTorch's allocator can have.
    pub limit: Bytes,
    /// The same without the margin: what the plan stays within.
    pub planned: Bytes,
    /// What was asked.
    pub asked: Setup,
    /// Samples of a step on all GPUs; absent where as many as fit make one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<u64>,
    /// GPUs.
    pub gpus: u64,
    /// The recommended setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<Choice>,
    /// What differs from what was asked, and why.
    pub reasons: Vec<Reason>,
    /// Setups that no other one beats in fidelity, time and memory, the nearest to what was asked first.
    pub front: Vec<Choice>,
    /// How many there are.
    pub front_len: usize,
    /// Where nothing fits, what comes nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    /// Measures in the usual order, until it fits.
    pub ladder: Vec<Step>,
    /// The one measure that helps most, where the first of the order saves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Step>,
    /// How the setups were decided.
    pub searched: Decided,
    /// What is not searched.
    pub not_searched: Vec<String>,
    /// Why some setups cannot run.
    pub refused: Vec<String>,
}

/// A setup and what it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The setup.
    pub setup: Setup,
    /// How several GPUs share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// Samples of a step on all GPUs.
    pub samples: u64,
    /// Highest bytes that tensors hold.
    pub live: Bytes,
    /// Highest allocated and reserved bytes of the first steps, played through the allocator; absent where it was not
    /// played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_allocated: Option<Bytes>,
    /// See `peak_allocated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<Bytes>,
    /// How often the first steps give the whole cache back to find room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Estimated time of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// Estimated samples a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// How far it is from what was asked; 0 learns the same but for rounding.
    pub distance: u32,
    /// The next larger micro-batch, where it was played, and whether it trains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_batch: Option<(u64, bool)>,
}

/// One change of what was asked: the difference to the recommended setup without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The entry.
    pub key: String,
    /// What was asked.
    pub from: String,
    /// What is recommended.
    pub to: String,
    /// Bytes that it saves at the peak; negative where it takes more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves: Option<i64>,
    /// Seconds more for each sample; negative where it is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether the recommended setup would not fit without it.
    pub needed: bool,
}

/// What comes nearest, and what stands in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// The setup with the lowest peak.
    pub choice: Choice,
    /// Bytes that are missing.
    pub short: Bytes,
    /// The phase that holds its peak.
    pub phase: Phase,
    /// What lives there, largest first.
    pub parts: Vec<(String, Bytes)>,
}

/// One measure of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The entry that is changed; nothing for what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Highest allocated bytes of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Bytes>,
    /// Bytes more (or less) than without it.
    pub difference: i64,
    /// The phase that holds the peak with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether it stays.
    pub kept: bool,
    /// Whether the setup trains now.
    pub trains: bool,
}

/// What a plan is made of beside the search.
pub struct Target<'a> {
    /// What the model is called.
    pub model: &'a str,
    /// What PyTorch's allocator can have.
    pub limit: Bytes,
    /// The card, where one was named.
    pub card: Option<&'static Device>,
    /// Setups of the front that are told.
    pub most: usize,
}

impl Plan {
    /// Plays what was found through the allocator, and tells it.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn new(judge: &Judge<'_>, found: Found, target: &Target<'_>) -> Result<Self, SimulateError> {
        let recommended = judge.recommend(&found)?;
        let all = front(&found.fitting, judge.limit);
        let mut shown: Vec<Choice> = Vec::new();
        for candidate in &all {
            if shown.len() == target.most {
                break;
            }
            if let Some(settled) = judge.settle(candidate)? {
                shown.push(settled.into());
            }
        }
        let nearest = match (&recommended, &found.nearest) {
            (None, Some(candidate)) => nearest(judge, candidate).ok(),
            _ => None,
        };
        let climbed = climb(judge);
        let space = judge.space;
        Ok(Self {
            model: target.model.to_owned(),
            card: target.card.map(|device| device.name.clone()),
            limit: target.limit,
            planned: judge.limit,
            asked: space.asked().clone(),
            effective: space.effective(),
            gpus: space.world(),
            reasons: recommended.iter().flat_map(|best| &best.reasons).map(reason).collect(),
            recommended: recommended.map(|best| best.settled.into()),
            front: shown,
            front_len: all.len(),
            nearest,
            offer: climbed.as_ref().and_then(|ladder| ladder.offer.as_ref()).map(offered),
            ladder: climbed
                .map(|ladder| ladder.rungs.iter().map(rung).collect())
                .unwrap_or_default(),
            searched: found.decided,
            not_searched: not_searched(space.world()),
            refused: found.refused,
        })
    }
}

/// What this version does not simulate, and so cannot search.
fn not_searched(gpus: u64) -> Vec<String> {
    let of_several = [
        "tensor and pipeline parallelism: their activations and buffers are not simulated",
        "DeepSpeed's ZeRO-2 and ZeRO-3: the sharded strategies are PyTorch's FSDP2, without and with resharding",
        "FSDP2 with accumulation, clipping or 8-bit states",
    ];
    match gpus {
        1 => vec!["activations and weights in the host's memory on one GPU".to_owned()],
        _ => of_several.map(str::to_owned).to_vec(),
    }
}

fn climb(judge: &Judge<'_>) -> Option<Ladder> {
    if judge.space.world() > 1 {
        return None;
    }
    let gpu = judge.device.and_then(Device::gpu).unwrap_or_default();
    let asked = Setup {
        batch: judge.space.effective().unwrap_or(judge.space.asked().batch),
        accum: 1,
        ..judge.space.asked().clone()
    };
    ladder(judge.space.model(0), &asked, gpu, judge.limit).ok()
}

fn nearest(judge: &Judge<'_>, candidate: &Candidate) -> Result<Nearest, SimulateError> {
    let gpu = judge.device.and_then(Device::gpu).unwrap_or_default();
    let model = judge.space.model(candidate.input);
    let setup = super::search::repeated(&candidate.setup);
    let report: Report = match &candidate.parallel {
        None => simulate_on(model, &setup, gpu)?,
        Some(parallel) => simulate_parallel(model, &setup, parallel, gpu)?,
    };
    let live = report.timeline.live(report.timeline.peak_instant());
    let mut parts: Vec<(String, Bytes)> = Vec::new();
    for held in live.together() {
        let name = held.kind().label();
        match parts.iter_mut().find(|(known, _)| known == name) {
            Some((_, bytes)) => *bytes += held.bytes,
            None => parts.push((name.to_owned(), held.bytes)),
        }
    }
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    Ok(Nearest {
        choice: Choice::of(candidate),
        short: report.peak_allocated.max(candidate.peak).saturating_sub(judge.limit),
        phase: report.peak_phase,
        parts,
    })
}

impl Choice {
    fn of(candidate: &Candidate) -> Self {
        let ms = candidate.time.map(|time| time.get() * 1e3);
        Self {
            setup: candidate.setup.clone(),
            parallel: candidate.parallel,
            samples: candidate.samples(),
            live: candidate.peak,
            peak_allocated: None,
            peak_reserved: None,
            retries: None,
            step_ms: ms,
            samples_per_s: ms.map(|ms| candidate.samples() as f64 / ms * 1e3),
            distance: candidate.distance,
            next_batch: None,
        }
    }
}

impl From<Settled> for Choice {
    fn from(settled: Settled) -> Self {
        Self {
            peak_allocated: Some(settled.trial.peak_allocated),
            peak_reserved: Some(settled.trial.peak_reserved),
            retries: Some(settled.trial.retries),
            next_batch: settled.next,
            ..Self::of(&settled.candidate)
        }
    }
}

fn reason(of: &super::reason::Reason) -> Reason {
    Reason {
        key: of.key.to_owned(),
        from: of.from.clone(),
        to: of.to.clone(),
        saves: of.saves,
        seconds: of.costs,
        needed: of.needed,
    }
}

fn rung(of: &Rung) -> Step {
    Step {
        key: of.change.map(|change| change.key().to_owned()),
        to: of.change.map(super::change::Change::value),
        peak: of.peak,
        difference: of.difference,
        phase: of.phase,
        kept: of.kept,
        trains: of.trains,
    }
}

fn offered(of: &super::ladder::Offer) -> Step {
    Step {
        key: Some(of.change.key().to_owned()),
        to: Some(of.change.value()),
        peak: None,
        difference: of.difference,
        phase: None,
        kept: true,
        trains: of.trains,
    }
}
