//! Embeddings, blocks and last norm.

use std::rc::Rc;

use super::JetMoeConfig;
use super::block::Block;
use crate::model::decoder::block::BlockContext;
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, Numbered, RmsNorm, Rotary};
use crate::tape::{Tape, Tensor};

/// `JetMoeModel`.
pub(super) struct JetMoeStack {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Block>>,
    norm: RmsNorm,
    rotary: Rotary,
}

impl JetMoeStack {
    /// Makes the stack.
    pub fn new(b: &Builder, c: &JetMoeConfig) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c)));
        let layers = (0..c.layers as usize).map(block).collect();
        let norm = RmsNorm::new(b, "norm", c.hidden);
        let rotary = Rotary::new(b, c.head_dim).dynamic(c.rope.is_dynamic());
        Self {
            embed_tokens,
            layers,
            norm,
            rotary: rotary.initialised(b.tape()),
        }
    }
}

impl Stack for JetMoeStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let position_ids = run.position_ids(t, &embeds);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: false,
            position_ids: Some(position_ids),
            cache,
        });
        let h = run_blocks(t, run, (&self.layers, &shared), embeds.clone(), Block::forward);
        let out = self.norm.call(t, &h);
        drop((h, shared, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}
