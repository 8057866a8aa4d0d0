//! Attention of the decoders (`BartAttention`).

use super::config::BartConfig;
use crate::nn::{self, AttentionCall, Builder, KvCache, Linear};
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// State that all blocks of one forward share.
pub(super) struct BlockContext {
    pub attn: Attention,
    pub mask: Option<Mask>,
    pub cache: Option<KvCache>,
}

pub(super) struct SelfAttention {
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

impl SelfAttention {
    pub fn new(b: &Builder, c: &BartConfig) -> Self {
        Self {
            k_proj: Linear::adapted(b, "k_proj", c.hidden, c.hidden, c.bias),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, c.hidden, c.bias),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, c.hidden, c.bias),
            out_proj: Linear::new(b, "out_proj", c.hidden, c.hidden, c.bias),
            heads: c.heads,
            dropout: c.attention_dropout,
        }
    }

    pub fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
        let q = heads(t.scope("q_proj", || self.q_proj.forward(t, &x)));
        let k = t.scope("k_proj", || self.k_proj.forward(t, &x));
        let v = t.scope("v_proj", || self.v_proj.forward(t, &x));
        let (mut k, mut v) = (heads(k), heads(v));
        if let Some(cache) = &shared.cache {
            (k, v) = cache.update(t, &k, &v);
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
}
