//! Sizes of Mamba 2's mixer.

use crate::nn::Activation;

/// Mamba 2's mixer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mamba2Config {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Heads and their states.
    pub sizes: Mamba2Sizes,
    /// The convolution.
    pub conv: ConvSizes,
    /// True if the projection into the mixer has a bias.
    pub in_bias: bool,
    /// True if the projection out of the mixer has a bias.
    pub out_bias: bool,
    /// Place of the gate's product, relative to the norm.
    pub gating: Gating,
    /// True if inputs are multiplied by a number, and projections by one for each element (Falcon H1).
    pub has_multipliers: bool,
}

/// Where a mixer multiplies the output of its heads with its gate, relative to the norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gating {
    /// Before a norm over all channels (Mamba 2).
    BeforeNorm,
    /// Before a norm over each of this many groups of channels (Nemotron-H).
    BeforeNormOf(u64),
    /// Before or after a norm over each of this many groups of channels, whose weight is applied in fp32 (Falcon H1).
    BesideNorm {
        /// Groups of channels.
        groups: u64,
        /// True if the norm comes before the gate.
        norm_first: bool,
    },
    /// Without a norm (Falcon H1).
    Alone,
}

/// Heads of a mixer, and their states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mamba2Sizes {
    /// Heads.
    pub heads: u64,
    /// Elements of one head.
    pub head_dim: u64,
    /// Groups of heads that share the projections B and C of the state (`n_groups`).
    pub groups: u64,
    /// Elements of the state for each element of a head.
    pub state: u64,
    /// Positions of a chunk.
    pub chunk: u64,
}

impl Mamba2Sizes {
    /// Elements of all heads.
    pub const fn inner(&self) -> u64 {
        self.heads * self.head_dim
    }

    /// Channels of the convolution.
    pub const fn channels(&self) -> u64 {
        self.inner() + 2 * self.groups * self.state
    }
}

/// Sizes of the convolution along positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvSizes {
    /// Positions that it sees.
    pub kernel: u64,
    /// True if it has a bias.
    pub bias: bool,
    /// Activation after it.
    pub activation: Activation,
}
