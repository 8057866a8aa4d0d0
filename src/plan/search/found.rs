//! What a search finds, and how it decided.

use serde::{Deserialize, Serialize};

use vramscope_engine::Setup;
use vramscope_engine::setup::Parallel;
use vramscope_engine::units::{Bytes, Seconds};

/// A setup that was looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The setup, with its micro-batch and how many make a step.
    pub setup: Setup,
    /// How several GPUs share it.
    pub parallel: Option<Parallel>,
    /// Which of the space's inputs it takes.
    pub input: usize,
    /// Highest live bytes: of a pass with the states beside it, or of the update.
    pub peak: Bytes,
    /// Estimated time of a step of all samples; nothing where the card's rates are not known.
    pub time: Option<Seconds>,
    /// How far it is from what was asked: 0 where it learns the same but for rounding.
    pub distance: u32,
}

impl Candidate {
    /// Samples of a step, on all GPUs.
    pub fn samples(&self) -> u64 {
        self.setup.batch * self.setup.accum * self.parallel.map_or(1, |parallel| parallel.replicas())
    }

    /// Estimated seconds for each sample; 0 where the time is not known, so that it decides nothing.
    pub fn seconds_a_sample(&self) -> f64 {
        self.time.map_or(0.0, |time| time.get() / self.samples() as f64)
    }
}

/// How the setups of a space were decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Setups that are dealt with.
    pub setups: usize,
    /// Runs that were recorded, operation by operation.
    pub recorded: usize,
    /// Setups that were put together from a recorded pass and a recorded update.
    pub summed: usize,
    /// Setups ruled out because a smaller micro-batch, their update alone or a line below them passes the room, or
    /// fits within it although a larger micro-batch does too.
    pub bounded: usize,
    /// Setups that another one beats in everything.
    pub dominated: usize,
    /// Setups that cannot run at all.
    pub refused: usize,
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Setups that fit, each with the largest micro-batch that does.
    pub fitting: Vec<Candidate>,
    /// The one with the lowest peak of those that do not.
    pub nearest: Option<Candidate>,
    /// How setups were decided.
    pub decided: Decided,
    /// Why some cannot run, each reason once.
    pub refused: Vec<String>,
}
