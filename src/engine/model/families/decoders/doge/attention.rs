//! Doge's attention, whose mask is computed from the values (`transformers/models/doge/modeling_doge.py`).

use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::{DecoderConfig, OwnSizes};
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Mask, Module, Tape, Tensor};

/// `DogeAttention`.
pub(super) struct DynamicAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    /// `A`, [kv heads].
    decay: Tensor,
    dt_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    head_dim: u64,
    /// Keys that each query attends to at most.
    kept: u64,
    dropout: f64,
}

impl DynamicAttention {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let OwnSizes::KeptKeys(kept) = c.own else {
            unreachable!("the family has a number of kept keys")
        };
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, kv, c.qkv_bias),
            decay: b.weight("A", [c.kv_heads]),
            dt_proj: Linear::new(b, "dt_proj", kv, c.kv_heads, c.qkv_bias),
            o_proj: Linear::adapted(b, "o_proj", q, c.hidden, c.o_bias),
            q_norm: RmsNorm::new(b, "q_norm", c.head_dim),
            k_norm: RmsNorm::new(b, "k_norm", c.head_dim),
            head_dim: c.head_dim,
            kept,
            dropout: c.attention_dropout,
        }
    }

    pub fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            let mut q = t.transpose(&self.q_norm.call(t, &heads(self.q_proj.call(t, &x))), 1, 2);
            let mut k = t.transpose(&self.k_norm.call(t, &heads(self.k_proj.call(t, &x))), 1, 2);
            let mut v = t.transpose(&heads(self.v_proj.call(t, &x)), 1, 2);
            [q, k] = {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                [&q, &k].map(|x| nn::apply_rotary(t, x, &cos, &sin))
            };
            if let Some(cache) = &shared.cache {
                (k, v) = cache.update(t, &k, &v);
            }
            let steps = self.steps(t, &v);
            let mut mask = self.mask(t, &steps, shared.mask.as_ref(), &x);
            let [kv_heads, keys] = [mask.size(1), mask.last()];
            let heads = q.size(1);
            if kv_heads != heads {
                let stretched = t.expand(&t.unsqueeze(&mask, 2), [batch, kv_heads, heads / kv_heads, seq, keys]);
                mask = t.reshape(&stretched, [batch, heads, seq, keys]);
            }
            let mask = Mask::Bias(mask);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: Some(&mask),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.contiguous(&t.reshape(&out, [batch, seq, heads * self.head_dim]));
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }

    /// `dt_states` of the values, [batch, kv heads, keys].
    fn steps(&self, t: &Tape, v: &Tensor) -> Tensor {
        let [batch, kv_heads, keys, width] = [v.size(0), v.size(1), v.size(2), v.size(3)];
        let flat = t.reshape(&t.transpose(v, 1, 2), [batch, keys, kv_heads * width]);
        let projected = self.dt_proj.call(t, &flat);
        drop(flat);
        let decayed = {
            let positive = t.softplus(&projected);
            t.mul(&self.decay, &positive)
        };
        t.transpose(&t.exp(&decayed), 1, 2)
    }

    /// `prepare_dynamic_mask`, [batch, kv heads, queries, keys].
    fn mask(&self, t: &Tape, steps: &Tensor, causal: Option<&Mask>, x: &Tensor) -> Tensor {
        let [batch, kv_heads, queries, keys] = [steps.size(0), steps.size(1), x.size(1), steps.last()];
        let mut mask = t.expand(&t.unsqueeze(steps, 2), [batch, kv_heads, queries, keys]);
        let mut _bias = None;
        if let Some(causal) = causal {
            let bias = match causal {
                Mask::Bool(allowed) => {
                    let scalars = [t.empty([], x.dtype(), "0"), t.empty([], x.dtype(), "lowest value")];
                    let bias = t.empty(*allowed.shape(), x.dtype(), "where");
                    drop(scalars);
                    bias
                }
                Mask::Bias(bias) => bias.clone(),
            };
            let hidden = t.compute(&bias, DType::Bool, "comparison");
            mask = t.masked_fill(&mask, &hidden);
            _bias = Some(bias);
        }
        if keys <= self.kept {
            return mask;
        }
        let shape = [batch, kv_heads, queries, keys];
        let mut active = t.empty(shape, x.dtype(), "zeros");
        let places = {
            let [_, places] = t.topk(&mask, self.kept);
            places
        };
        active = t.compute(&active, x.dtype(), "scatter");
        let others = t.compute(&active, DType::Bool, "comparison");
        mask = t.masked_fill(&mask, &others);
        drop((places, active));
        mask
    }
}
