//! Attention within a window, with rotary positions of its own (`RecurrentGemmaAttention`).

use super::RecurrentGemmaConfig;
use super::block::Shared;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, Rotary};
use crate::tape::{Module, Tape, Tensor};

/// `RecurrentGemmaAttention`.
pub(super) struct SelfAttention {
    module: Module,
    /// Queries, keys and values.
    maps: [Linear; 3],
    o_proj: Linear,
    rotary: Rotary,
    head_dim: u64,
    dropout: f64,
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &RecurrentGemmaConfig) -> Self {
        let map = |name, heads| Linear::new(b, name, c.hidden, heads * c.head_dim, c.attention_bias);
        Self {
            module: b.module(),
            maps: [
                map("q_proj", c.heads),
                map("k_proj", c.kv_heads),
                map("v_proj", c.kv_heads),
            ],
            o_proj: Linear::new(b, "o_proj", c.heads * c.head_dim, c.hidden, true),
            rotary: Rotary::new(b, c.rope.rotated(c.head_dim)),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// `_init_weights`, which makes the frequencies once more.
    pub fn initialise(&self, t: &Tape) {
        self.rotary.initialise(t);
    }

    /// [batch, seq, hidden] → the same, and attention weights.
    pub fn call(&self, t: &Tape, shared: &Shared, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let [mut q, mut k, mut v] = self.maps.each_ref().map(|map| {
                let made = map.call(t, x);
                let heads = made.last() / self.head_dim;
                t.transpose(&t.view(&made, [batch, seq, heads, self.head_dim]), 1, 2)
            });
            let (cos, sin) = self.rotary.call(t, &v, &shared.position_ids);
            {
                let [cos, sin] = [&cos, &sin].map(|wave| t.unsqueeze(wave, 1));
                [q, k] = nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin);
            }
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: shared.mask.as_ref(),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut attended, weights) = nn::attention(t, shared.attn, &call);
            attended = t.reshape(&attended, [batch, seq, q.size(1) * self.head_dim]);
            let out = self.o_proj.call(t, &attended);
            drop((attended, cos, sin, q, k, v));
            (out, weights)
        })
    }
}
