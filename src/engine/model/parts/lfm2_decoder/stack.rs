//! LFM2 without its head (`Lfm2Model`).

use std::rc::Rc;

use super::config::Lfm2Config;
use super::layer::Layer;
use crate::model::decoder::head::head_for;
use crate::model::forward::Run;
use crate::model::parts::mixed_layers::{LayerContext, MixedDecoder, run_layers};
use crate::nn::{Builder, Embedding, Linear, Numbered, RmsNorm, Rotary};
use crate::tape::{Tape, Tensor};

/// `Lfm2Model`: embeddings, layers, last norm.
pub struct Lfm2Decoder {
    embed_tokens: Embedding,
    layers: Vec<Numbered<Layer>>,
    /// For each layer, true if it is a short convolution.
    is_conv: Vec<bool>,
    rotary: Rotary,
    embedding_norm: RmsNorm,
}

impl Lfm2Decoder {
    pub fn new(b: &Builder, c: &Lfm2Config) -> Self {
        let t = b.tape();
        let embed_tokens = Embedding::new(b, "embed_tokens", c.vocab, c.hidden);
        let layer = |i| Numbered::new(b, "layers", i, || Rc::new(Layer::new(b, c, i)));
        let layers = (0..c.is_conv.len()).map(layer).collect();
        let rotary = Rotary::new(b, c.head_dim);
        let embedding_norm = RmsNorm::new(b, "embedding_norm", c.hidden);
        Self {
            embed_tokens,
            layers,
            is_conv: c.is_conv.clone(),
            rotary: rotary.initialised(t),
            embedding_norm,
        }
    }

    /// Makes the output projection, tied to the token embedding or separate.
    pub fn head(&self, b: &Builder, c: &Lfm2Config) -> Linear {
        head_for(b, self.embed_tokens.weight(), c.tie_word_embeddings)
    }
}

impl MixedDecoder for Lfm2Decoder {
    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds))
    }

    fn forward_text(
        &self,
        t: &Tape,
        run: &Run,
        embeds: Tensor,
        packed: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Tensor {
        let shared = LayerContext::new(t, run, &embeds, packed, padding, |position_ids| {
            self.rotary.call(t, &embeds, position_ids)
        });
        let layers = (&*self.layers, &*self.is_conv);
        run_layers(t, run, layers, &self.embedding_norm, shared, embeds)
    }
}
