//! Laguna's attention (`transformers/models/laguna/modeling_laguna.py`).

use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::layer::Attend;
use crate::model::decoder::{DecoderConfig, OwnSizes};
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `LagunaAttention`.
pub(super) struct GatedAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    g_proj: Linear,
    /// True if a gate multiplies a whole head, false if an element.
    gates_heads: bool,
    head_dim: u64,
    dropout: f64,
}

impl GatedAttention {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let OwnSizes::Laguna { heads, gates_heads, .. } = &c.own else {
            unreachable!("the family has heads of each block")
        };
        let heads = heads[index];
        let (q, kv) = (heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::adapted(b, "o_proj", q, c.hidden, c.o_bias),
            q_norm: RmsNorm::new(b, "q_norm", c.head_dim),
            k_norm: RmsNorm::new(b, "k_norm", c.head_dim),
            g_proj: Linear::new(b, "g_proj", c.hidden, if *gates_heads { heads } else { q }, false),
            gates_heads: *gates_heads,
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    /// Multiplies what attention made, [batch, seq, heads × width], by its gates.
    fn gated(&self, t: &Tape, x: &Tensor, out: &Tensor) -> (Tensor, Tensor) {
        let gate = {
            let positive = {
                let wide = t.to_dtype(&self.g_proj.call(t, x), DType::F32);
                t.softplus(&wide)
            };
            t.to_dtype(&positive, out.dtype())
        };
        let shape = *out.shape();
        let gated = match self.gates_heads {
            true => {
                let heads = t.view(out, [shape[0], shape[1], gate.last(), self.head_dim]);
                let product = t.mul(&heads, &t.unsqueeze(&gate, 3));
                t.view(&product, shape)
            }
            false => t.mul(out, &gate),
        };
        (gated, gate)
    }
}

impl Attend for GatedAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            let mut q = heads(self.q_proj.call(t, &x));
            let mut k = heads(self.k_proj.call(t, &x));
            let mut v = heads(self.v_proj.call(t, &x));
            q = t.transpose(&self.q_norm.call(t, &q), 1, 2);
            k = t.transpose(&self.k_norm.call(t, &k), 1, 2);
            v = t.transpose(&v, 1, 2);
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
            out = t.contiguous(&t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]));
            let _gate;
            (out, _gate) = self.gated(t, &x, &out);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
