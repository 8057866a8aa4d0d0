//! A block: attention of all streams, and an MLP, each before a norm.

use super::ProphetNetConfig;
use super::attention::{Shared, StreamAttention};
use crate::model::config::Activation;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `ProphetNetDecoderLayer`.
pub(super) struct Block {
    attention: StreamAttention,
    attention_norm: LayerNorm,
    /// Attention to an encoder and its norm, which nothing runs.
    _cross: Option<([Linear; 4], LayerNorm)>,
    feed_forward: FeedForward,
    feed_forward_norm: LayerNorm,
}

/// `ProphetNetFeedForward`.
struct FeedForward {
    module: Module,
    intermediate: Linear,
    output: Linear,
    activation: Activation,
    activation_dropout: f64,
    dropout: f64,
}

impl Block {
    /// Makes a block.
    pub fn new(b: &Builder, c: &ProphetNetConfig) -> Self {
        let t = b.tape();
        let norm = |name| LayerNorm::new(b, name, c.hidden);
        let attention = t.scope("self_attn", || StreamAttention::new(b, c));
        let attention_norm = norm("self_attn_layer_norm");
        let map = |name| Linear::new(b, name, c.hidden, c.hidden, true);
        let cross = || {
            let maps = t.scope("cross_attn", || {
                ["key_proj", "value_proj", "query_proj", "out_proj"].map(map)
            });
            (maps, norm("cross_attn_layer_norm"))
        };
        Self {
            attention,
            attention_norm,
            _cross: c.has_cross_attention.then(cross),
            feed_forward: t.scope("feed_forward", || FeedForward {
                module: b.module(),
                intermediate: Linear::new(b, "intermediate", c.hidden, c.intermediate, true),
                output: Linear::new(b, "output", c.intermediate, c.hidden, true),
                activation: c.activation,
                activation_dropout: c.activation_dropout,
                dropout: c.dropout,
            }),
            feed_forward_norm: norm("feed_forward_layer_norm"),
        }
    }

    /// [batch, (1 + streams) × seq, hidden] → the same.
    pub fn forward(&self, t: &Tape, shared: &Shared, x: Tensor) -> Tensor {
        let (attended, weights) = self.attention.call(t, shared, &x);
        let mut h = {
            let sum = t.add(&x, &attended);
            self.attention_norm.call(t, &sum)
        };
        let fed = self.feed_forward.call(t, &h);
        h = {
            let sum = t.add(&fed, &h);
            self.feed_forward_norm.call(t, &sum)
        };
        drop((fed, attended, weights, x));
        h
    }
}

impl FeedForward {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || {
            let mut h = nn::activate(t, self.activation, self.intermediate.call(t, x));
            h = t.functional_dropout(&h, self.activation_dropout);
            h = self.output.call(t, &h);
            t.functional_dropout(&h, self.dropout)
        })
    }
}
