//! Embeddings, blocks and head (`transformers/models/recurrent_gemma/modeling_recurrent_gemma.py`).

use std::rc::Rc;

use super::RecurrentGemmaConfig;
use super::block::{Block, Shared};
use crate::dtype::DType;
use crate::model::decoder::head::head_for;
use crate::model::forward::Run;
use crate::model::parts::text::{Head, Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, KvCache, Linear, Numbered, Pattern, RmsNorm, RmsScale};
use crate::tape::{Tape, Tensor};

/// `RecurrentGemmaModel`.
pub(super) struct RecurrentStack {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Block>>,
    final_norm: RmsNorm,
    normalizer: Tensor,
    /// Positions that attention sees.
    window: u64,
    /// Number of blocks that have attention.
    attentions: usize,
}

/// `lm_head`, whose logits are soft-capped.
pub(super) struct CappedHead(Linear);

impl RecurrentStack {
    pub fn new(b: &Builder, c: &RecurrentGemmaConfig) -> Self {
        let t = b.tape();
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let block = |i| Numbered::new(b, "layers", i, || Rc::new(Block::new(b, c, i)));
        let layers: Vec<Numbered<Block>> = (0..c.has_attention.len()).map(block).collect();
        let final_norm = RmsNorm::scaled(b, "final_norm", c.hidden, RmsScale::OnePlusWeight);
        let normalizer = b.buffer("normalizer", [], DType::Bf16);
        layers.iter().for_each(|layer| layer.initialise(t));
        Self {
            embed_tokens,
            layers,
            final_norm,
            normalizer,
            window: c.window,
            attentions: c.has_attention.iter().filter(|has| **has).count(),
        }
    }
}

impl Stack for RecurrentStack {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        // No output has the cache, which ends with the model's forward.
        let cache = run
            .cache(&[])
            .map(|_| KvCache::with_windows(&vec![Some(self.window); self.attentions]));
        let position_ids = nn::position_ids(t, &embeds);
        let mut shared = Shared {
            attn: run.attn,
            mask: None,
            position_ids,
            cache,
        };
        if shared.cache.is_some() {
            self.layers.iter().for_each(|layer| layer.reset(t, &embeds));
        }
        shared.mask = nn::pattern_mask(t, run.attn, &embeds, Pattern::Sliding(self.window));
        let shared = Rc::new(shared);
        let mut h = {
            let factor = t.to_dtype(&self.normalizer, embeds.dtype());
            t.mul(&embeds, &factor)
        };
        h = run_blocks(t, run, (&self.layers, &shared), h, Block::forward);
        h = self.final_norm.call(t, &h);
        drop((shared, embeds));
        h
    }

    fn keeps_states(&self) -> bool {
        true
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}

impl CappedHead {
    pub fn new(b: &Builder, stack: &RecurrentStack, c: &RecurrentGemmaConfig) -> Self {
        Self(head_for(b, stack.table(), c.tie_word_embeddings))
    }
}

impl Head for CappedHead {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        let product = self.0.call(t, h);
        let logits = nn::soft_cap(t, product.clone());
        drop(product);
        logits
    }
}
