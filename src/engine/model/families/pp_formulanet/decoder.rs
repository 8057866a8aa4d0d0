//! The decoder of PP-FormulaNet, which is MBart's (`PPFormulaNetTextModel`).

use std::rc::Rc;

use super::config::TextConfig;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::bart::{BlockContext, Layer, run_blocks_across};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// Embeddings, blocks, and norms before and after them.
pub(super) struct Decoder {
    embed_tokens: Embedding,
    embed_positions: Embedding,
    layers: Vec<Numbered<Layer>>,
    layernorm_embedding: LayerNorm,
    layer_norm: LayerNorm,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &TextConfig) -> Self {
        let hidden = c.block.hidden;
        Self {
            embed_tokens: Embedding::new(b, "embed_tokens", c.vocab, hidden),
            // Positions are counted from 2 on.
            embed_positions: Embedding::new(b, "embed_positions", c.positions + 2, hidden),
            layers: (0..c.layers as usize)
                .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, &c.block))))
                .collect(),
            layernorm_embedding: LayerNorm::new(b, "layernorm_embedding", hidden),
            layer_norm: LayerNorm::new(b, "layer_norm", hidden),
            dropout: c.block.dropout,
        }
    }

    /// Token ids [batch, seq] and features of images [batch, positions, hidden] → [batch, seq, hidden].
    pub fn forward(&self, t: &Tape, run: &Run, ids: &Tensor, features: &Tensor) -> Tensor {
        let embeds = t.scope("embed_tokens", || {
            let looked_up = self.embed_tokens.forward(t, ids);
            run.embedded(t, t.scale(&looked_up))
        });
        let cache = run.cache(&[]);
        let position_ids = nn::position_ids(t, &embeds);
        let padding = t.empty([embeds.size(0), embeds.size(1)], DType::F32, "mask of ones");
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let positions = t.scope("embed_positions", || {
            let shifted = t.compute(&position_ids, DType::I64, "position ids + 2");
            self.embed_positions.forward(t, &shifted)
        });
        drop(position_ids);
        let mut h = t.add(&embeds, &positions);
        h = self.layernorm_embedding.call(t, &h);
        h = t.functional_dropout(&h, self.dropout);
        let shared = Rc::new(BlockContext {
            attn: run.attn,
            mask,
            mask_across: None,
            cache,
            _position_ids: None,
        });
        h = run_blocks_across(t, run, (&self.layers, &shared), h, features);
        h = self.layer_norm.call(t, &h);
        drop((shared, positions, padding, embeds));
        h
    }
}
