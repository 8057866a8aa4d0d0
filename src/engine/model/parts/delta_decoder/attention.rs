//! Attention whose output a gate multiplies (`Qwen3_5Attention`).

use super::config::DeltaDecoderConfig;
use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm, RmsScale};
use crate::tape::{Module, Tape, Tensor};

/// `Qwen3_5Attention`: queries come with a gate of the output, positions are on a part of each head.
pub struct GatedAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    head_dim: u64,
    dropout: f64,
}

impl GatedAttention {
    pub fn new(b: &Builder, c: &DeltaDecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let linear = |name, input, output| Linear::adapted(b, name, input, output, c.attention_bias);
        let norm = |name| RmsNorm::scaled(b, name, c.head_dim, RmsScale::OnePlusWeight);
        Self {
            module: b.module(),
            q_proj: linear("q_proj", c.hidden, 2 * q),
            k_proj: linear("k_proj", c.hidden, kv),
            v_proj: linear("v_proj", c.hidden, kv),
            o_proj: linear("o_proj", q, c.hidden),
            q_norm: norm("q_norm"),
            k_norm: norm("k_norm"),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// [batch, seq, hidden] → the same, and the weights of eager attention.
    pub fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let split = |x: &Tensor, width: u64| t.view(x, [batch, seq, x.numel() / (batch * seq * width), width]);
            let (mut q, mut gate) = {
                let projected = self.q_proj.call(t, &x);
                let halves = t.split(&split(&projected, 2 * self.head_dim), 3, &[self.head_dim; 2]);
                (halves[0].clone(), halves[1].clone())
            };
            gate = t.reshape(&gate, [batch, seq, q.size(2) * self.head_dim]);
            q = {
                let normed = self.q_norm.call(t, &t.view(&q, *q.shape()));
                t.transpose(&normed, 1, 2)
            };
            let mut k = {
                let projected = self.k_proj.call(t, &x);
                let heads = split(&projected, self.head_dim);
                drop(projected);
                let normed = self.k_norm.call(t, &heads);
                t.transpose(&normed, 1, 2)
            };
            let mut v = {
                let projected = self.v_proj.call(t, &x);
                t.transpose(&split(&projected, self.head_dim), 1, 2)
            };
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                nn::apply_rotary_to_part(t, [&q, &k], &cos, &sin)
            };
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
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = {
                let activated = t.sigmoid(&gate);
                t.mul(&out, &activated)
            };
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
