//! A plan as every face and script reads it.

use serde::{Deserialize, Serialize};

use super::recommend::{Judge, Settled};
use super::search::{Candidate, Decided, Found};
use super::telling::Telling;
use vramscope_engine::Setup;
use vramscope_engine::device::Device;
use vramscope_engine::report::Phase;
use vramscope_engine::setup::Parallel;
use vramscope_engine::simulate::SimulateError;
use vramscope_engine::units::Bytes;

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

/// What is left of a limit without a margin in percent.
pub fn less_margin(limit: Bytes, percent: f64) -> Bytes {
    Bytes::new((limit.get() as f64 * (1.0 - percent / 100.0)) as u64)
}

impl Plan {
    /// Plays what was found through the allocator, and tells it.
    ///
    /// # Errors
    /// The first error of a simulation.
    pub fn new(judge: &Judge<'_>, found: Found, target: &Target<'_>) -> Result<Self, SimulateError> {
        let mut telling = Telling::new(judge, found, target);
        while telling.step(judge)? {}
        Ok(telling.plan())
    }
}

impl Choice {
    /// A setup that was not played.
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
