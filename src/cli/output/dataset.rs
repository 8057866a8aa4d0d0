//! What a dataset says of a run, as JSON has it.

use serde::Serialize;
use vramscope_engine::units::Bytes;

/// Who counts the tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The file itself.
    File,
    /// The model's tokenizer.
    Tokenizer,
    /// Nobody: a token is at least one byte.
    Bytes,
}

/// What a dataset says of a run.
#[derive(Debug, Clone, Serialize)]
pub struct OfData {
    /// Name of the file or folder.
    pub file: String,
    /// Samples that could be read.
    pub samples: usize,
    /// Records that could not.
    pub unread: u64,
    /// Who counts tokens.
    pub tokens: Counted,
    /// Positions to which the tool cuts samples, if a line or a flag says so.
    pub limit: Option<u64>,
    /// Most positions that a share of the samples takes.
    pub positions: Percentiles,
    /// Micro-batch of samples of the middle length, at their fewest positions: most have a longer one.
    pub typical: MicroBatch,
    /// Micro-batch of the longest samples, of which the figures are.
    pub longest: MicroBatch,
    /// Share of the samples whose micro-batches fit, and their most positions; if the longest does not.
    pub fits: Option<Fitting>,
}

/// Percentiles of positions.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Percentiles {
    /// Of half of the samples.
    pub p50: u64,
    /// Of 95%.
    pub p95: u64,
    /// Of 99%.
    pub p99: u64,
    /// Of all.
    pub most: u64,
}

/// A micro-batch, and the peak of a step with it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MicroBatch {
    /// Positions of its longest sample.
    pub positions: u64,
    /// Images of that sample.
    pub images: u32,
    /// Highest bytes in tensors.
    pub peak_allocated: Bytes,
    /// Highest bytes that the allocator holds.
    pub peak_reserved: Bytes,
}

/// The part of a dataset that fits.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Fitting {
    /// Share of its samples.
    pub share: f64,
    /// Most positions among them.
    pub positions: u64,
}
