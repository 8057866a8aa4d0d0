//! Llama's block (`transformers/models/{llama,mistral,qwen2,…}/modeling_*.py`).

use super::block::{Block, BlockContext};
use super::config::DecoderConfig;
use super::family::QueryNorms;
use super::mlp::Mlp;
use crate::dtype::DType;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::tape::{Tape, Tensor};

/// The part of a block that takes each position by itself: an MLP, or experts.
pub trait FeedForward {
    /// [batch, seq, hidden] → [batch, seq, hidden].
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor;
}

/// Llama's block: attention and an MLP, each with a norm and a residual connection.
pub struct Layer {
    self_attn: SelfAttention,
    mlp: Box<dyn FeedForward>,
    /// Norm of attention's input, or of its output.
    first_norm: RmsNorm,
    /// Norm of the MLP's input, or of its output.
    second_norm: RmsNorm,
    norms_after: bool,
    /// Dropout after attention and after the MLP (Seed-OSS).
    dropout: f64,
}

struct SelfAttention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    /// Norms of queries and keys.
    norms: Option<[RmsNorm; 2]>,
    place: QueryNorms,
    /// True if positions turn queries and keys, and in which type.
    turns: Turns,
    head_dim: u64,
    dropout: f64,
}

/// Rotation of queries and keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// In their own type.
    InOwnType,
    /// In fp32, and back to their own type.
    InF32,
    /// Not at all.
    Never,
}

impl FeedForward for Mlp {
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        self.forward(t, x)
    }
}

impl Layer {
    pub fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        Self::with_mlp(b, c, index, &|| Box::new(Mlp::new(b, c)))
    }

    /// Makes a block with another module in place of the MLP.
    pub fn with_mlp(b: &Builder, c: &DecoderConfig, index: usize, mlp: &dyn Fn() -> Box<dyn FeedForward>) -> Self {
        let t = b.tape();
        let block = c.family.block();
        let norm = |name| RmsNorm::scaled(b, name, c.hidden, block.norm_scale);
        let [first, second] = norm_names(block.norms_after);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c, index)),
            mlp: t.scope("mlp", mlp),
            first_norm: norm(first),
            second_norm: norm(second),
            norms_after: block.norms_after,
            dropout: c.residual_dropout,
        }
    }
}

/// Names of a block's norms, those of attention first.
const fn norm_names(after: bool) -> [&'static str; 2] {
    match after {
        true => ["post_attention_layernorm", "post_feedforward_layernorm"],
        false => ["input_layernorm", "post_attention_layernorm"],
    }
}

impl Block for Layer {
    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        if self.norms_after {
            return self.forward_normed_after(t, shared, x);
        }
        let [first, second] = norm_names(false);
        let residual = x.clone();
        let mut h = t.scope(first, || self.first_norm.forward(t, &x));
        drop(x);
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, h));
        h = out;
        if self.dropout > 0.0 {
            h = t.scope("self_attn", || t.dropout(&h, self.dropout));
        }
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope(second, || self.second_norm.forward(t, &h));
        h = t.scope("mlp", || self.mlp.forward(t, h));
        if self.dropout > 0.0 {
            h = t.scope("mlp", || t.dropout(&h, self.dropout));
        }
        t.add(&residual, &h)
    }
}

impl Layer {
    /// `Olmo2DecoderLayer.forward`.
    fn forward_normed_after(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> Tensor {
        let [first, second] = norm_names(true);
        let residual = x.clone();
        let (mut h, _weights) = t.scope("self_attn", || self.self_attn.forward(t, shared, x));
        h = t.scope(first, || self.first_norm.forward(t, &h));
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope("mlp", || self.mlp.forward(t, h));
        h = t.scope(second, || self.second_norm.forward(t, &h));
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &DecoderConfig, index: usize) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let block = c.family.block();
        let [of_q, of_k] = match block.query_norms {
            QueryNorms::OfAll => [q, kv],
            QueryNorms::OfHeads | QueryNorms::OfSplitHeads => [c.head_dim; 2],
        };
        let norm = |name, width| RmsNorm::scaled(b, name, width, block.norm_scale);
        let sees_all = c.windows[index].is_none() && c.windows.iter().any(Option::is_some);
        Self {
            q_proj: Linear::columns(b, "q_proj", c.hidden, q, c.qkv_bias),
            k_proj: Linear::columns(b, "k_proj", c.hidden, kv, c.qkv_bias),
            v_proj: Linear::columns(b, "v_proj", c.hidden, kv, c.qkv_bias),
            o_proj: Linear::rows(b, "o_proj", q, c.hidden, c.o_bias),
            norms: c.qk_norm.then(|| [norm("q_norm", of_q), norm("k_norm", of_k)]),
            place: block.query_norms,
            turns: match () {
                () if block.only_sliding_turn && sees_all => Turns::Never,
                () if block.turns_in_f32 => Turns::InF32,
                () => Turns::InOwnType,
            },
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn forward(&self, t: &Tape, shared: &BlockContext, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq] = [x.size(0), x.size(1)];
        let norm = |which: usize, place: QueryNorms, x: Tensor| match &self.norms {
            Some(norms) if self.place == place => t.scope(["q_norm", "k_norm"][which], || norms[which].forward(t, &x)),
            _ => x,
        };
        let heads = |x: Tensor, which: Option<usize>| {
            let mut split = t.view(&x, [batch, seq, x.last() / self.head_dim, self.head_dim]);
            if let Some(which) = which {
                split = norm(which, QueryNorms::OfHeads, split);
            }
            t.transpose(&split, 1, 2)
        };
        let project = |name, proj: &Linear| t.scope(name, || proj.forward(t, &x));
        let (mut q, mut k, mut v);
        if shared.splits_last || self.place == QueryNorms::OfAll {
            q = norm(0, QueryNorms::OfAll, project("q_proj", &self.q_proj));
            k = norm(1, QueryNorms::OfAll, project("k_proj", &self.k_proj));
            let unsplit = project("v_proj", &self.v_proj);
            q = heads(q, Some(0));
            k = heads(k, Some(1));
            v = heads(unsplit, None);
        } else {
            q = heads(project("q_proj", &self.q_proj), Some(0));
            k = heads(project("k_proj", &self.k_proj), Some(1));
            v = heads(project("v_proj", &self.v_proj), None);
        }
        q = norm(0, QueryNorms::OfSplitHeads, q);
        k = norm(1, QueryNorms::OfSplitHeads, k);
        if self.turns != Turns::Never {
            let cos = t.unsqueeze(&shared.cos, 1);
            let sin = t.unsqueeze(&shared.sin, 1);
            let mut turned = (nn::apply_rotary(t, &q, &cos, &sin), nn::apply_rotary(t, &k, &cos, &sin));
            if self.turns == Turns::InF32 {
                turned = (t.to_dtype(&turned.0, q.dtype()), t.to_dtype(&turned.1, k.dtype()));
            }
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
