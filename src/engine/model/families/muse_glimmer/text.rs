//! Attention of Muse Glimmer's language model (`MuseGlimmerTextAttention`).

use std::rc::Rc;

use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::{Attend, Layer};
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, AttentionCall, Builder, Linear, PowerRmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `MuseGlimmerTextAttention`: one norm without a weight for queries and keys, and a gate on what it makes.
struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    gate_proj: Linear,
    qk_norm: PowerRmsNorm,
    /// True if RoPE rotates queries and keys: in sliding blocks.
    rotates: bool,
    head_dim: u64,
    dropout: f64,
}

/// `MuseGlimmerTextDecoderLayer`.
pub(super) fn block(b: &Builder, c: &DecoderConfig, index: usize) -> Rc<dyn Block> {
    let attention = || Box::new(SelfAttention::new(b, c, index)) as Box<dyn Attend>;
    Rc::new(Layer::with_parts(b, c, &attention, &|| Box::new(Mlp::new(b, c))))
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::adapted(b, "o_proj", q, c.hidden, c.o_bias),
            gate_proj: Linear::adapted(b, "gate_proj", c.hidden, q, false),
            qk_norm: PowerRmsNorm::plain("qk_norm"),
            rotates: c.windows[index].is_some(),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }
}

impl Attend for SelfAttention {
    fn call(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| {
                let split = t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(self.q_proj.call(t, &x));
            let mut k = heads(self.k_proj.call(t, &x));
            let mut v = heads(self.v_proj.call(t, &x));
            q = {
                let normed = self.qk_norm.call(t, &q);
                t.scale(&normed)
            };
            k = self.qk_norm.call(t, &k);
            if self.rotates {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                let rotated = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
                (q, k) = rotated;
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
            let (mut out, weights) = nn::attention(t, shared.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = {
                let activated = t.sigmoid(&self.gate_proj.call(t, &x));
                t.mul(&out, &activated)
            };
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
