//! Results of a search, and counts of how it decided.

use serde::{Deserialize, Serialize};

use vramscope_engine::Setup;
use vramscope_engine::setup::Parallel;
use vramscope_engine::units::{Bytes, Seconds};

/// A setup that was considered, with its memory and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The setup, with its micro-batch and accumulation.
    pub setup: Setup,
    /// Parallel strategy; `None` for one GPU.
    pub parallel: Option<Parallel>,
    /// Index of its input in the space.
    pub input: usize,
    /// Peak of live bytes: the higher one of forward and backward beside the optimizer states, and of the update.
    pub peak: Bytes,
    /// Estimated time of a step with all samples; `None` if the card's rates are unknown.
    pub time: Option<Seconds>,
    /// Distance from the asked setup: 0 if it learns the same up to rounding.
    pub distance: u32,
}

impl Candidate {
    /// Samples per step over all GPUs.
    pub fn samples(&self) -> u64 {
        self.setup.batch * self.setup.accum * self.parallel.map_or(1, |parallel| parallel.replicas())
    }

    /// Estimated seconds per sample; 0 if the time is unknown, so that time does not affect comparisons.
    pub fn seconds_a_sample(&self) -> f64 {
        self.time.map_or(0.0, |time| time.get() / self.samples() as f64)
    }
}

/// Counts of how the setups of a space were decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Setups decided so far.
    pub setups: usize,
    /// Runs recorded operation by operation.
    pub recorded: usize,
    /// Setups composed of a recorded pass and a recorded update.
    pub summed: usize,
    /// Setups excluded without recording: a smaller micro-batch, their update alone or a lower bound already exceeds
    /// the room, or a larger micro-batch also fits.
    pub bounded: usize,
    /// Setups that another setup dominates.
    pub dominated: usize,
    /// Setups that cannot run.
    pub refused: usize,
}

/// Results of a search.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Setups that fit, each with the largest micro-batch that does.
    pub fitting: Vec<Candidate>,
    /// Of the setups that do not fit, the one with the lowest peak.
    pub nearest: Option<Candidate>,
    /// Counts of how the setups were decided.
    pub decided: Decided,
    /// Reasons why some setups cannot run, each once.
    pub refused: Vec<String>,
}
