//! `BioGptModel` (`transformers/models/biogpt/modeling_biogpt.py`).

use std::rc::Rc;

use super::BioGptConfig;
use crate::model::forward::Run;
use crate::model::parts::bart::{BlockContext, Layer};
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// Entries of the position embedding before the first position.
const OFFSET: u64 = 2;

/// A decoder without its head.
pub(super) struct Decoder {
    embed_tokens: Embedding,
    embed_positions: Embedding,
    layers: Vec<Numbered<Layer>>,
    layer_norm: LayerNorm,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &BioGptConfig) -> Self {
        let hidden = c.block.hidden;
        Self {
            embed_tokens: Embedding::new(b, "embed_tokens", c.vocab, hidden),
            embed_positions: Embedding::new(b, "embed_positions", c.positions + OFFSET, hidden),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, &c.block))))
                .collect(),
            layer_norm: LayerNorm::new(b, "layer_norm", hidden),
            dropout: c.block.dropout,
        }
    }
}

impl Stack for Decoder {
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, _: Option<&Tensor>) -> Tensor {
        let embeds = t.scope("embed_tokens", || {
            let scaled = t.scale(&self.embed_tokens.forward(t, ids));
            run.embedded(t, scaled)
        });
        let cache = run.cache(&[]);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let position_ids = nn::position_ids(t, &embeds);
        let positions = t.scope("embed_positions", || {
            let shifted = t.compute(&position_ids, position_ids.dtype(), "position ids + 2");
            self.embed_positions.forward(t, &shifted)
        });
        let mut h = t.add(&embeds, &positions);
        h = t.functional_dropout(&h, self.dropout);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            mask_across: None,
            cache,
            _position_ids: Some(position_ids),
        });
        h = run_blocks(t, run, (&self.layers, &shared), h, Layer::forward);
        let out = self.layer_norm.call(t, &h);
        drop((shared, positions, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}
