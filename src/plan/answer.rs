//! The result of planning, in the form that frontends and scripts read.

use serde::{Deserialize, Serialize};

use super::builder::PlanBuilder;
use super::recommend::{Judge, Settled};
use super::search::{Candidate, Decided, Found};
use vramscope_engine::Setup;
use vramscope_engine::device::Device;
use vramscope_engine::report::Phase;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::SimulateError;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;

/// Recommended setups for a model, a card and a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the model.
    pub model: String,
    /// Name of the card, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// Bytes that PyTorch's allocator may reserve.
    pub limit: Bytes,
    /// The limit minus the safety margin, in bytes; the plan stays within it.
    pub planned: Bytes,
    /// The setup that the person asked for.
    pub asked: Setup,
    /// Samples per step over all GPUs; `None` if a step is one micro-batch of as many samples as fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective: Option<u64>,
    /// Number of GPUs.
    pub gpus: u64,
    /// The recommended setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<Choice>,
    /// Differences between the asked and the recommended setup, and the reason for each.
    pub reasons: Vec<Reason>,
    /// Setups on the Pareto front of distance, time and memory, the closest to the asked one first.
    pub front: Vec<Choice>,
    /// Number of setups on the whole front, including those not listed.
    pub front_len: usize,
    /// If nothing fits, the setup that comes closest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    /// Measures in the usual order, each added to the ones before, until the setup fits.
    pub ladder: Vec<LadderStep>,
    /// The single measure that saves most, if the first measure of the ladder saves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<LadderStep>,
    /// Counts of how the setups of the search were decided.
    pub searched: Decided,
    /// Options that this version cannot search.
    pub not_searched: Vec<String>,
    /// Reasons why some setups cannot run, each once.
    pub refused: Vec<String>,
}

impl Plan {
    /// A plan that changes nothing of a setup that was given, for exports.
    pub fn given(model: String, card: Option<String>, limit: Bytes, choice: Choice) -> Self {
        Self {
            model,
            card,
            limit,
            planned: limit,
            asked: choice.setup.clone(),
            effective: Some(choice.samples),
            gpus: choice.gpus(),
            recommended: Some(choice),
            reasons: Vec::new(),
            front: Vec::new(),
            front_len: 0,
            nearest: None,
            ladder: Vec::new(),
            offer: None,
            searched: Decided::default(),
            not_searched: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// The setup nearest to what was asked: the recommended one, or else the first of the front, which is sorted by distance.
    pub fn nearest_fit(&self) -> Option<&Choice> {
        self.recommended.as_ref().or(self.front.first())
    }

    /// The setup with the most samples per second, of those that train the same parameters as was asked, if there are
    /// any. `None` without times.
    pub fn fastest(&self) -> Option<&Choice> {
        let all = || self.recommended.iter().chain(&self.front);
        let same = all().filter(|choice| choice.setup.freeze == self.asked.freeze);
        let rate = |choice: &&Choice| choice.samples_per_s.unwrap_or_default();
        let fastest = same.max_by(|a, b| rate(a).total_cmp(&rate(b)));
        let fastest = fastest.or_else(|| all().max_by(|a, b| rate(a).total_cmp(&rate(b))));
        fastest.filter(|choice| choice.samples_per_s.is_some())
    }

    /// The setup that reserves least memory.
    pub fn smallest(&self) -> Option<&Choice> {
        self.recommended
            .iter()
            .chain(&self.front)
            .min_by_key(|choice| choice.reserved())
    }
}

/// A setup and the memory and time it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The setup.
    pub setup: Setup,
    /// Parallel strategy; `None` for one GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
    /// Samples per step over all GPUs.
    pub samples: u64,
    /// Peak of live bytes: tensors in blocks of 512 bytes, added up without replaying the allocator.
    pub live: Bytes,
    /// Peak of allocated bytes over the first steps, replayed through the allocator; `None` if the setup was not
    /// replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_allocated: Option<Bytes>,
    /// Peak of reserved bytes, the same as an estimate of the setup gives; `None` if the setup was not replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<Bytes>,
    /// Number of times that the first steps free the whole cache to find room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Estimated time of a step, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ms: Option<f64>,
    /// Estimated samples per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// Distance from the asked setup; 0 if it computes the same update up to rounding.
    pub distance: u32,
    /// The next larger micro-batch and whether it trains, if it was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_batch: Option<(u64, bool)>,
    /// Verdict of an estimate on the next larger micro-batch, in all memory of the card: one that does not leave the
    /// plan's margin may still be tight, or fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_verdict: Option<Verdict>,
}

impl Choice {
    /// A setup that was given, with the peaks of its run.
    pub fn given(setup: Setup, parallel: Option<Parallel>, allocated: Bytes, reserved: Bytes) -> Self {
        let mut choice = Self {
            samples: 0,
            live: allocated,
            peak_allocated: Some(allocated),
            peak_reserved: Some(reserved),
            retries: None,
            step_ms: None,
            samples_per_s: None,
            distance: 0,
            next_batch: None,
            next_verdict: None,
            setup,
            parallel,
        };
        let replicas = choice.parallel.as_ref().map_or(1, Parallel::replicas);
        choice.samples = choice.setup.batch * choice.setup.accum * replicas;
        choice
    }

    /// Number of GPUs that share a step.
    pub fn gpus(&self) -> u64 {
        self.parallel.as_ref().map_or(1, |parallel| parallel.world)
    }

    /// Peak of reserved bytes, or of live bytes if the setup was not replayed.
    pub fn reserved(&self) -> Bytes {
        self.peak_reserved.unwrap_or(self.live)
    }
}

/// One difference from the asked setup, compared with the recommended setup without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Key of the changed setting.
    pub key: String,
    /// The asked value.
    pub from: String,
    /// The recommended value.
    pub to: String,
    /// Bytes saved at the peak; negative if it takes more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves: Option<i64>,
    /// Additional seconds per sample; negative if it is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// True if the recommended setup would not fit without it.
    pub needed: bool,
}

/// The setup that comes closest to fitting, and what prevents it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// The setup with the lowest peak.
    pub choice: Choice,
    /// Missing bytes.
    pub short: Bytes,
    /// Phase of its peak.
    pub phase: Phase,
    /// Contents of the memory at the peak, the largest first.
    pub parts: Vec<(String, Bytes)>,
}

/// One step of [`Plan::ladder`]: a measure, and the peak with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderStep {
    /// Key of the changed setting; `None` for the asked setup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// New value of the setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Peak of allocated bytes of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Bytes>,
    /// Change of the peak in bytes, relative to the last step that was kept.
    pub difference: i64,
    /// Phase of the peak with this measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// True if the measure is kept.
    pub kept: bool,
    /// True if the setup now trains within the limit.
    pub trains: bool,
}

/// Inputs of a plan besides the search.
pub struct Target<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Bytes that PyTorch's allocator may reserve.
    pub limit: Bytes,
    /// The card, if one was given.
    pub card: Option<&'static Device>,
    /// Largest number of setups of the front to list.
    pub most: usize,
}

/// A limit reduced by a margin in percent.
pub fn less_margin(limit: Bytes, percent: f64) -> Bytes {
    Bytes::new((limit.get() as f64 * (1.0 - percent / 100.0)) as u64)
}

impl Plan {
    /// Replays the found setups through the allocator and builds the plan.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn new(judge: &Judge<'_>, found: Found, target: &Target<'_>) -> Result<Self, SimulateError> {
        let mut builder = PlanBuilder::new(judge, found, target);
        while builder.step(judge)? {}
        Ok(builder.plan())
    }
}

impl Choice {
    /// A setup that has not been replayed.
    pub(super) fn of(candidate: &Candidate) -> Self {
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
            next_verdict: None,
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
