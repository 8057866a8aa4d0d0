//! Blocks of a decoder, whichever they are, and what they share.

use crate::nn::KvCache;
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// A block of a decoder.
pub trait Block {
    /// Runs the block, [batch, seq, hidden] → [batch, seq, hidden].
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor;

    /// Runs the block with the choice of keys of the block before, and returns its own too, in a family whose blocks hand one
    /// on.
    fn forward_choosing(
        &self,
        t: &Tape,
        shared: &BlockContext,
        x: Tensor,
        _before: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        (self.forward(t, shared, x), None)
    }
}

/// State that all blocks of one forward share.
#[derive(Clone)]
pub struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cos: Tensor,
    pub sin: Tensor,
    /// True if all three projections are computed before any is split into heads (Qwen2-VL, Qwen2.5-VL and
    /// Llama-3.2-Vision).
    pub splits_last: bool,
    /// Cache of keys and values for generation.
    pub cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it.
    pub position_ids: Option<Tensor>,
}
