//! Embeddings, blocks and last norm.

use std::rc::Rc;

use super::MoshiConfig;
use super::block::{Block, Shared};
use crate::model::forward::Run;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, Numbered, RmsNorm, RmsScale};
use crate::tape::{Tape, Tensor};

/// `MoshiModel`.
pub(super) struct MoshiStack {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Block>>,
    norm: RmsNorm,
}

impl MoshiStack {
    /// Makes the stack.
    pub fn new(b: &Builder, c: &MoshiConfig) -> Self {
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab + 1, c.hidden);
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c)));
        Self {
            embed_tokens,
            layers: (0..c.layers as usize).map(block).collect(),
            norm: RmsNorm::scaled(b, "norm", c.hidden, RmsScale::WideWeight),
        }
    }
}

impl Stack for MoshiStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let position_ids = run.position_ids(t, &embeds);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let shared = Rc::new(Shared {
            attn: run.attn,
            mask,
            position_ids,
            cache: run.cache(&[]),
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
