//! Doge's block (`transformers/models/doge/modeling_doge.py`).

use super::attention::DynamicAttention;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::mlp::Mlp;
use crate::nn::{Builder, RmsNorm};
use crate::tape::{Tape, Tensor};

/// `DogeDecoderLayer`.
pub(crate) struct Layer {
    input_layernorm: RmsNorm,
    self_attn: DynamicAttention,
    /// Weights of the stream beside what attention makes, [hidden].
    input_residual: Tensor,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
    /// Weights of the stream beside what the MLP makes, [hidden].
    post_attention_residual: Tensor,
    dropout: f64,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> Self {
        let t = b.tape();
        Self {
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            self_attn: t.scope("self_attn", || DynamicAttention::new(b, c)),
            input_residual: b.weight("input_residual", [c.hidden]),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            post_attention_residual: b.weight("post_attention_residual", [c.hidden]),
            dropout: c.residual_dropout,
        }
    }

    /// Adds what a part makes to the stream, which has weights.
    fn added(&self, t: &Tape, weights: &Tensor, residual: &Tensor, part: Tensor) -> Tensor {
        let dropped = t.functional_dropout(&part, self.dropout);
        drop(part);
        let weighted = t.mul(weights, residual);
        t.add(&weighted, &dropped)
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, h);
        h = self.added(t, &self.input_residual, &residual, out);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        self.added(t, &self.post_attention_residual, &residual, h)
    }
}
