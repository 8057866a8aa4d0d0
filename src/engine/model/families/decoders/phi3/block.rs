//! Phi-3's block: fused projections, positions on a part of each head
//! (`transformers/models/phi3/modeling_phi3.py`).

use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Phi3DecoderLayer`.
pub struct Layer {
    self_attn: SelfAttention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    dropout: f64,
}

struct SelfAttention {
    module: Module,
    o_proj: Linear,
    qkv_proj: Linear,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    dropout: f64,
    /// True if Liger replaces the rotation.
    liger_rope: bool,
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, _: usize) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            dropout: c.residual_dropout,
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, &h);
        h = out;
        h = t.add(&residual, &t.dropout(&h, self.dropout));
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        t.add(&residual, &t.dropout(&h, self.dropout))
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let width = (c.heads + 2 * c.kv_heads) * c.head_dim;
        Self {
            module: b.module(),
            o_proj: Linear::adapted(b, "o_proj", c.heads * c.head_dim, c.hidden, false),
            qkv_proj: Linear::new(b, "qkv_proj", c.hidden, width, false),
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
            liger_rope: b.has_liger_rope(),
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let [mut q, mut k, mut v] = {
                let qkv = self.qkv_proj.call(t, x);
                let parts =
                    [self.heads, self.kv_heads, self.kv_heads].map(|heads| t.narrow(&qkv, 2, heads * self.head_dim));
                parts.map(|part| {
                    let split = t.view(&part, [batch, seq, part.last() / self.head_dim, self.head_dim]);
                    t.transpose(&split, 1, 2)
                })
            };
            if self.liger_rope {
                [q, k] = t.liger_rope([&q, &k], [&shared.cos, &shared.sin]);
            } else {
                let cos = t.unsqueeze(&shared.cos, 1);
                let sin = t.unsqueeze(&shared.sin, 1);
                [q, k] = nn::apply_partial_rotary_in_turn(t, [&q, &k], &cos, &sin);
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
            out = t.reshape(&out, [batch, seq, self.heads * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }
}
