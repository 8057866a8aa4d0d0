//! Blocks of towers over packed patches.

use std::rc::Rc;

use super::attention::PackedAttention;
use super::config::PackedVisionConfig;
use crate::model::forward::Run;
use crate::model::parts::encoder::Mlp;
use crate::model::parts::qwen_vl::{Positions, Segments};
use crate::nn::{Builder, LayerNorm, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// SigLIP's block: attention and an MLP, each after a layer norm and with a residual connection.
pub struct PackedBlock {
    layer_norm1: LayerNorm,
    self_attn: PackedAttention,
    layer_norm2: LayerNorm,
    mlp: Mlp,
}

impl PackedBlock {
    fn new(b: &Builder, c: &PackedVisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        Self {
            layer_norm1: LayerNorm::new(b, "layer_norm1", hidden),
            self_attn: t.scope("self_attn", || {
                PackedAttention::new(b, hidden, c.shape.heads, c.attention_dropout)
            }),
            layer_norm2: LayerNorm::new(b, "layer_norm2", hidden),
            mlp: t.scope("mlp", || Mlp::new(b, c.shape, c.activation)),
        }
    }

    /// Patches → the same shape; queries and keys are rotated by `positions`, if there are some.
    fn forward(
        &self,
        t: &Tape,
        attn: Attention,
        segments: &Segments,
        positions: Option<&Positions>,
        x: Tensor,
    ) -> Tensor {
        let residual = x.clone();
        let mut h = self.layer_norm1.call(t, &x);
        drop(x);
        let (out, _weights) = match positions {
            Some(positions) => self.self_attn.call_rotated(t, attn, h, segments, positions),
            None => (self.self_attn.call(t, attn, h, segments), Vec::new()),
        };
        h = out;
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.layer_norm2.call(t, &h);
        h = self.mlp.call(t, &h);
        t.add(&residual, &h)
    }
}

/// The blocks of a tower (`encoder.layers`).
pub struct PackedBlocks(Vec<Numbered<PackedBlock>>);

impl PackedBlocks {
    /// Makes the blocks.
    pub fn new(b: &Builder, c: &PackedVisionConfig) -> Self {
        let block = |i| Numbered::new(b, "encoder.layers", i, || Rc::new(PackedBlock::new(b, c)));
        Self((0..c.shape.layers as usize).map(block).collect())
    }

    /// Runs all blocks, and `after` with the index and the output of each, which it may change along with the segments of
    /// the blocks that follow. Returns the last output and the last segments, which the caller's variable holds.
    pub fn forward(
        &self,
        t: &Tape,
        run: &Run,
        mut h: Tensor,
        (mut segments, positions): (Rc<Segments>, Option<Rc<Positions>>),
        mut after: impl FnMut(usize, Tensor, &mut Rc<Segments>) -> Tensor,
    ) -> (Tensor, Rc<Segments>) {
        for (i, block) in self.0.iter().enumerate() {
            let (called, of_block, positions, attn) = (block.clone(), segments.clone(), positions.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| called.forward(t, attn, &of_block, positions.as_deref(), x);
            // The caller of a block holds its input until the block returns.
            h = run.block(t, block, h.clone(), forward);
            h = after(i, h, &mut segments);
        }
        (h, segments)
    }
}
