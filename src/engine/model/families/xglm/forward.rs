//! `XGLMModel` (`transformers/models/xglm/modeling_xglm.py`).

use std::rc::Rc;

use super::XglmConfig;
use crate::model::forward::Run;
use crate::model::parts::bart::{BlockContext, Layer};
use crate::model::parts::sinusoids::sinusoids;
use crate::model::parts::text::{Stack, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Numbered};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// Entries of the table of positions before the first position.
const OFFSET: u64 = 2;

/// A decoder without its head.
pub(super) struct Decoder {
    embed_tokens: Embedding,
    /// Sines and cosines, [entries, hidden].
    embed_positions: Tensor,
    layers: Vec<Numbered<Layer>>,
    layer_norm: LayerNorm,
    dropout: f64,
}

impl Decoder {
    pub fn new(b: &Builder, c: &XglmConfig) -> Self {
        let (t, hidden) = (b.tape(), c.block.hidden);
        let shape = [c.positions + OFFSET, hidden];
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, hidden);
        let embed_positions = t.scope("embed_positions", || {
            sinusoids(t, b.dtype(), shape, || b.buffer("weights", shape, b.dtype()))
        });
        let layers = (0..c.layers as usize)
            .map(|i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, &c.block))))
            .collect();
        let layer_norm = LayerNorm::new(b, "layer_norm", hidden);
        // `_init_weights` makes the table once more and copies it.
        drop(sinusoids(t, b.dtype(), shape, || {
            t.empty(shape, b.dtype(), "weights again")
        }));
        Self {
            embed_tokens,
            embed_positions,
            layers,
            layer_norm,
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
        let attn = Attention::Eager;
        let mask = nn::causal_mask(t, attn, &embeds);
        let [seq, width] = [embeds.size(1), self.embed_positions.size(1)];
        let position_ids = nn::ids(t, &[1, seq], "position_ids");
        let positions = t.scope("embed_positions", || {
            let _shifted = t.compute(&position_ids, position_ids.dtype(), "position ids + 2");
            t.empty([1, seq, width], self.embed_positions.dtype(), "index_select")
        });
        let mut h = t.add(&embeds, &positions);
        drop(positions);
        h = t.functional_dropout(&h, self.dropout);
        let shared = Rc::new(BlockContext {
            attn,
            mask,
            mask_across: None,
            cache,
            _position_ids: None,
        });
        h = run_blocks(t, run, (&self.layers, &shared), h, Layer::forward);
        let out = self.layer_norm.call(t, &h);
        drop((shared, position_ids, embeds));
        out
    }

    fn table(&self) -> &Tensor {
        self.embed_tokens.weight()
    }
}
