//! AFMoE's block (`transformers/models/afmoe/modeling_afmoe.py`).

use super::moe::SparseMlp;
use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm, RmsScale};
use crate::tape::{Module, Tape, Tensor};

/// Names of the block's norms, before and after attention, and before and after the MLP.
const NORMS: [&str; 4] = [
    "input_layernorm",
    "post_attention_layernorm",
    "pre_mlp_layernorm",
    "post_mlp_layernorm",
];

/// `AfmoeDecoderLayer`.
pub(crate) struct Layer {
    self_attn: SelfAttention,
    norms: [RmsNorm; 4],
    mlp: Box<dyn FeedForward>,
}

/// `AfmoeAttention`.
struct SelfAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    gate_proj: Linear,
    /// True if RoPE rotates queries and keys: in sliding blocks.
    rotates: bool,
    head_dim: u64,
    dropout: f64,
}

fn norm(b: &Builder, name: &'static str, width: u64) -> RmsNorm {
    RmsNorm::scaled(b, name, width, RmsScale::WeightFirst)
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c, index)),
            norms: NORMS.map(|name| norm(b, name, c.hidden)),
            mlp: t.scope("mlp", || match c.experts.as_ref().filter(|e| e.sparse[index]) {
                Some(experts) => Box::new(SparseMlp::new(b, c, experts)) as Box<dyn FeedForward>,
                None => Box::new(Mlp::new(b, c)),
            }),
        }
    }

    fn normed(&self, t: &Tape, which: usize, x: &Tensor) -> Tensor {
        self.norms[which].call(t, x)
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.normed(t, 0, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, shared, &h);
        h = out;
        h = self.normed(t, 1, &h);
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.normed(t, 2, &h);
        h = self.mlp.call(t, h);
        h = self.normed(t, 3, &h);
        t.add(&residual, &h)
    }
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
            q_norm: norm(b, "q_norm", c.head_dim),
            k_norm: norm(b, "k_norm", c.head_dim),
            gate_proj: Linear::adapted(b, "gate_proj", c.hidden, q, false),
            rotates: c.windows[index].is_some(),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, shared: &BlockContext, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            let mut q = heads(self.q_proj.call(t, x));
            let mut k = heads(self.k_proj.call(t, x));
            let mut v = heads(self.v_proj.call(t, x));
            let gate = self.gate_proj.call(t, x);
            q = t.transpose(&self.q_norm.call(t, &q), 1, 2);
            k = t.transpose(&self.k_norm.call(t, &k), 1, 2);
            v = t.transpose(&v, 1, 2);
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
            out = t.view(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = {
                let activated = t.sigmoid(&gate);
                t.mul(&out, &activated)
            };
            let projected = self.o_proj.call(t, &out);
            drop((out, gate));
            (projected, weights)
        })
    }
}
