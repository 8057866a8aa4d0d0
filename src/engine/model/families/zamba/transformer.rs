//! The transformer block that hybrid layers share.

use super::ZambaConfig;
use crate::dtype::DType;
use crate::model::decoder::block::BlockContext;
use crate::model::decoder::mlp::Mlp;
use crate::model::families::zamba2::Transform;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `ZambaAttentionDecoderLayer`.
pub(super) struct SharedTransformer {
    module: Module,
    attention: SelfAttention,
    feed_forward: Mlp,
    input_norm: RmsNorm,
    pre_ff_norm: RmsNorm,
}

/// `ZambaAttention`.
struct SelfAttention {
    module: Module,
    qkv: [Linear; 3],
    output: Linear,
    head_dim: u64,
    dropout: f64,
}

impl SharedTransformer {
    pub fn new(b: &Builder, c: &ZambaConfig) -> Self {
        let t = b.tape();
        let [q, kv] = [c.heads, c.kv_heads].map(|heads| heads * c.head_dim);
        let maps = [("q_proj", q), ("k_proj", kv), ("v_proj", kv)];
        Self {
            module: b.module(),
            attention: t.scope("self_attn", || SelfAttention {
                module: b.module(),
                qkv: maps.map(|(name, width)| Linear::new(b, name, 2 * c.hidden, width, false)),
                output: Linear::new(b, "o_proj", q, c.hidden, false),
                head_dim: c.head_dim,
                dropout: c.attention_dropout,
            }),
            feed_forward: t.scope("feed_forward", || {
                Mlp::of(b, [c.hidden, c.intermediate], false, c.activation)
            }),
            input_norm: RmsNorm::new(b, "input_layernorm", 2 * c.hidden),
            pre_ff_norm: RmsNorm::new(b, "pre_ff_layernorm", c.hidden),
        }
    }
}

impl Transform for SharedTransformer {
    fn call(&self, t: &Tape, shared: &BlockContext, _: usize, [x, embeds]: [&Tensor; 2]) -> Tensor {
        self.module.call(t, || {
            let mut h = t.cat(&[x, embeds], 2);
            h = self.input_norm.call(t, &h);
            let (attended, _weights) = self.attention.call(t, shared, &h);
            h = attended;
            h = self.pre_ff_norm.call(t, &h);
            self.feed_forward.call(t, h)
        })
    }
}

impl SelfAttention {
    /// Output and weights.
    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let [q, mut k, mut v] = [0, 1, 2].map(|i| {
                let flat = self.qkv[i].call(t, x);
                let split = t.view(&flat, [batch, seq, flat.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            });
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
            (self.output.call(t, &out), weights)
        })
    }
}
