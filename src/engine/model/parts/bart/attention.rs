//! Attention of the decoders.

use super::config::BartConfig;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cache: Option<KvCache>,
    /// Passed to every block, so a checkpointed block keeps it, but for XGLM.
    pub _position_ids: Option<Tensor>,
}

/// `BioGptAttention` and `XGLMAttention`.
pub(super) struct SelfAttention {
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
    is_xglm: bool,
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &BartConfig) -> Self {
        let map = |name| Linear::adapted(b, name, c.hidden, c.hidden, true);
        Self {
            k_proj: map("k_proj"),
            v_proj: map("v_proj"),
            q_proj: map("q_proj"),
            out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, true),
            heads: c.heads,
            dropout: c.attention_dropout,
            is_xglm: c.form.is_xglm,
        }
    }

    /// Output [batch, seq, hidden] and the weights.
    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
        let mut q = t.scope("q_proj", || self.q_proj.forward(t, x));
        let (mut k, mut v);
        if self.is_xglm {
            q = t.scale(&q);
            let flat = t.scope("k_proj", || self.k_proj.forward(t, x));
            v = t.scope("v_proj", || self.v_proj.forward(t, x));
            (k, v) = (heads(flat), heads(v));
            q = heads(q);
        } else {
            q = heads(q);
            k = heads(t.scope("k_proj", || self.k_proj.forward(t, x)));
            v = heads(t.scope("v_proj", || self.v_proj.forward(t, x)));
        }
        if let Some(cache) = &shared.cache {
            (k, v) = cache.update(t, &k, &v);
        }
        if self.is_xglm {
            return self.own(t, [q, k, v], shared.mask.as_ref());
        }
        let call = AttentionCall {
            q: &q,
            k: &k,
            v: &v,
            mask: shared.mask.as_ref(),
            dropout: self.dropout,
            softmax: None,
        };
        let (mut out, weights) = nn::attention(t, shared.attn, &call);
        out = t.reshape(&out, [batch, seq, hidden]);
        out = t.scope("out_proj", || self.out_proj.forward(t, &out));
        (out, weights)
    }

    /// XGLM's attention over all heads of all samples as one batch.
    fn own(&self, t: &Tape, qkv: [Tensor; 3], mask: Option<&Mask>) -> (Tensor, Option<Tensor>) {
        let [batch, heads, seq, width] = [0, 1, 2, 3].map(|i| qkv[0].size(i));
        let [q, k, v] = qkv.map(|x| t.reshape(&x, [batch * heads, x.size(2), width]));
        let mut weights = t.matmul(&q, &t.transpose(&k, 1, 2));
        let keys = weights.last();
        if let Some(Mask::Bias(bias) | Mask::Bool(bias)) = mask {
            weights = t.add(&t.view(&weights, [batch, heads, seq, keys]), bias);
            let lowest = t.empty([], DType::F32, "lowest value");
            weights = t.maximum(&weights, &lowest);
            drop(lowest);
            weights = t.view(&weights, [batch * heads, seq, keys]);
        }
        weights = if weights.dtype() == DType::F16 {
            t.to_dtype(&t.softmax(&weights, Some(DType::F32)), DType::F16)
        } else {
            t.softmax(&weights, None)
        };
        let returned = t.view(&weights, [batch, heads, seq, keys]);
        let probabilities = t.dropout(&weights, self.dropout);
        let mut out = t.matmul(&probabilities, &v);
        out = t.view(&out, [batch, heads, seq, width]);
        out = t.reshape(&t.transpose(&out, 1, 2), [batch, seq, heads * width]);
        out = t.scope("out_proj", || self.out_proj.forward(t, &out));
        drop((probabilities, weights, q, k, v));
        (out, Some(returned))
    }
}
