//! Llama's block (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use super::block::{Block, BlockContext};
use super::config::DecoderConfig;
use super::mlp::Mlp;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Tape, Tensor};

/// The part of a block that takes each position by itself: an MLP, or experts.
pub trait FeedForward {
    /// [batch, seq, hidden] → [batch, seq, hidden].
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor;
}

/// Llama's block: attention and a gated MLP, each after a norm and with a residual connection.
pub struct Layer {
    self_attn: SelfAttention,
    mlp: Box<dyn FeedForward>,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    /// Dropout after attention and after the MLP (Seed-OSS).
    dropout: f64,
}

struct SelfAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Norms of queries and keys, over each head.
    qk_norm: Option<[RmsNorm; 2]>,
    head_dim: u64,
    dropout: f64,
}

impl FeedForward for Mlp {
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        self.forward(t, x)
    }
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::with_mlp(b, c, &|| Box::new(Mlp::new(b, c)))
    }

    /// Makes a block with another module in place of the MLP.
    pub fn with_mlp(b: &Builder, c: &DecoderConfig, mlp: &dyn Fn() -> Box<dyn FeedForward>) -> Self {
        let t = b.tape();
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            mlp: t.scope("mlp", mlp),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            dropout: c.residual_dropout,
        }
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = t.scope("input_layernorm", || self.input_layernorm.forward(t, &x));
        drop(x);
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, h));
        h = out;
        if self.dropout > 0.0 {
            h = t.scope("self_attn", || t.dropout(&h, self.dropout));
        }
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope("post_attention_layernorm", || {
            self.post_attention_layernorm.forward(t, &h)
        });
        h = t.scope("mlp", || self.mlp.forward(t, h));
        if self.dropout > 0.0 {
            h = t.scope("mlp", || t.dropout(&h, self.dropout));
        }
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.o_bias),
            qk_norm: c
                .qk_norm
                .then(|| ["q_norm", "k_norm"].map(|name| RmsNorm::new(b, name, c.head_dim))),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq] = [x.size(0), x.size(1)];
        let heads = |x: Tensor, norm: Option<usize>| {
            let mut split = t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            if let (Some(i), Some(norms)) = (norm, &self.qk_norm) {
                split = t.scope(["q_norm", "k_norm"][i], || norms[i].forward(t, &split));
            }
            t.transpose(&split, 1, 2)
        };
        let project = |name, proj: &Linear| t.scope(name, || proj.forward(t, &x));
        let (mut q, mut k, mut v);
        if shared.splits_last {
            q = project("q_proj", &self.q_proj);
            k = project("k_proj", &self.k_proj);
            let unsplit = project("v_proj", &self.v_proj);
            q = heads(q, Some(0));
            k = heads(k, Some(1));
            v = heads(unsplit, None);
        } else {
            q = heads(project("q_proj", &self.q_proj), Some(0));
            k = heads(project("k_proj", &self.k_proj), Some(1));
            v = heads(project("v_proj", &self.v_proj), None);
        }
        {
            let cos = t.unsqueeze(&shared.cos, 1);
            let sin = t.unsqueeze(&shared.sin, 1);
            let turned = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
            (q, k) = turned;
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
        out = t.scope("o_proj", || self.o_proj.forward(t, &out));
        (out, weights)
    }
}
