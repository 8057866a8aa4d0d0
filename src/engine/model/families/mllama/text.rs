//! Llama-3.2-Vision's language model: a Llama decoder with gated cross-attention layers in between
//! (`transformers/models/mllama/modeling_mllama.py`).

use std::rc::Rc;

use super::config::MllamaTextConfig;
use crate::dtype::DType;
use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::{Block, BlockContext};
use crate::model::decoder::layer::Layer;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, Embedding, KvCache, Linear, Numbered, RmsNorm, Rotary};
use crate::tape::{Mask, Module, Tape, Tensor};

/// `MllamaTextModel`.
pub struct MllamaText {
    embed_tokens: Embedding,
    layers: Vec<Numbered<TextLayer>>,
    norm: RmsNorm,
    rotary: Rotary,
    /// True if there is never an image: cross-attention layers are left out.
    is_alone: bool,
}

/// Entries of the token embedding beyond the vocabulary.
const EXTRA_TOKENS: u64 = 8;

enum TextLayer {
    SelfAttention(Box<Layer>),
    CrossAttention(Box<CrossLayer>),
}

/// `MllamaCrossAttentionDecoderLayer`.
struct CrossLayer {
    cross_attn: CrossAttention,
    input_layernorm: RmsNorm,
    attn_gate: Tensor,
    mlp: Mlp,
    post_attention_layernorm: RmsNorm,
    mlp_gate: Tensor,
}

struct CrossAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    head_dim: u64,
    dropout: f64,
}

/// Inputs of the cross-attention layers.
#[derive(Clone)]
pub struct ImageStates {
    /// Image features, [images × tiles, positions, hidden].
    pub states: Tensor,
    /// Features that a token may attend to, as a bias [samples, 1, seq, features].
    pub mask: Mask,
    /// Tokens that may attend to any feature, [samples, 1, seq, 1].
    pub rows: Tensor,
}

/// State that all blocks of one forward share.
struct Context {
    own: BlockContext,
    image: Option<ImageStates>,
}

impl MllamaText {
    pub fn new(b: &Builder, c: &MllamaTextConfig) -> Self {
        let t = b.tape();
        let text = DecoderConfig {
            attention_dropout: c.dropout,
            ..c.decoder.clone()
        };
        let layer = |i: u64| {
            if c.cross_attention_layers.contains(&i) {
                TextLayer::CrossAttention(Box::new(CrossLayer::new(b, &text)))
            } else {
                TextLayer::SelfAttention(Box::new(Layer::new(b, &text, i as usize)))
            }
        };
        Self {
            embed_tokens: Embedding::new(b, "embed_tokens", text.vocab + EXTRA_TOKENS, text.hidden),
            layers: (0..text.layers)
                .map(|i| Numbered::new(b, "layers", i as usize, || Rc::new(layer(i))))
                .collect(),
            norm: RmsNorm::new(b, "norm", text.hidden),
            rotary: Rotary::new(b, text.head_dim)
                .dynamic(text.rope.is_dynamic())
                .initialised(t),
            is_alone: false,
        }
    }

    /// Leaves cross-attention layers out, as without an image.
    pub fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// Weight of the token embedding.
    pub fn weight(&self) -> &Tensor {
        self.embed_tokens.weight()
    }

    /// Token ids [samples, seq] → last hidden states [samples, seq, hidden]. Without an image, cross-attention uses the
    /// keys and values in the run's cache.
    pub fn forward(&self, t: &Tape, run: &Run, ids: &Tensor, image: Option<ImageStates>) -> Tensor {
        let embeds = self.embed_tokens.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let cache = run.cache(&[]);
        let position_ids = nn::position_ids(t, &embeds);
        let mask = nn::causal_mask(t, run.attn, &embeds);
        let (cos, sin) = self.rotary.call(t, &embeds, &position_ids);
        let own = BlockContext {
            attn: run.attn,
            mask,
            cos,
            sin,
            splits_last: true,
            cache,
            position_ids: Some(position_ids),
        };
        let context = Rc::new(Context { own, image });
        let mut h = embeds.clone();
        for layer in &self.layers {
            if self.is_alone && matches!(**layer, TextLayer::CrossAttention(_)) {
                continue;
            }
            let (block, context) = (layer.clone(), context.clone());
            let forward = move |t: &Tape, x: Tensor| block.forward(t, &context, x);
            h = run.block(t, layer, h, forward);
        }
        let out = self.norm.call(t, &h);
        drop((context, embeds));
        out
    }
}

impl TextLayer {
    fn forward(&self, t: &Tape, context: &Context, x: Tensor) -> Tensor {
        match self {
            Self::SelfAttention(layer) => layer.forward(t, &context.own, x),
            Self::CrossAttention(layer) => layer.forward(t, context, x),
        }
    }
}

impl CrossLayer {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let t = b.tape();
        Self {
            cross_attn: t.scope("cross_attn", || CrossAttention::new(b, c)),
            input_layernorm: RmsNorm::new(b, "input_layernorm", c.hidden),
            attn_gate: b.weight("cross_attn_attn_gate", [1]),
            mlp: t.scope("mlp", || Mlp::new(b, c)),
            post_attention_layernorm: RmsNorm::new(b, "post_attention_layernorm", c.hidden),
            mlp_gate: b.weight("cross_attn_mlp_gate", [1]),
        }
    }

    fn forward(&self, t: &Tape, context: &Context, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.input_layernorm.call(t, &x);
        drop(x);
        let (out, _weights) = self.cross_attn.call(t, context, &h);
        h = out;
        h = t.add(&residual, &nn::gated(t, &self.attn_gate, &h));
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        if let Some(image) = &context.image {
            h = t.mul(&t.select(&image.rows, 1), &h);
        }
        t.add(&residual, &nn::gated(t, &self.mlp_gate, &h))
    }
}

impl CrossAttention {
    fn new(b: &Builder, c: &DecoderConfig) -> Self {
        let (q, kv) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            module: b.module(),
            q_proj: Linear::adapted(b, "q_proj", c.hidden, q, false),
            k_proj: Linear::adapted(b, "k_proj", c.hidden, kv, false),
            v_proj: Linear::adapted(b, "v_proj", c.hidden, kv, false),
            o_proj: Linear::adapted(b, "o_proj", q, c.hidden, false),
            q_norm: RmsNorm::new(b, "q_norm", c.head_dim),
            k_norm: RmsNorm::new(b, "k_norm", c.head_dim),
            head_dim: c.head_dim,
            dropout: c.attention_dropout,
        }
    }

    fn call(&self, t: &Tape, context: &Context, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq] = [x.size(0), x.size(1)];
            let heads = |x: Tensor| {
                let positions = x.numel() / x.last() / batch;
                let split = t.view(&x, [batch, positions, x.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let mut q = heads(self.q_proj.call(t, x));
            q = self.q_norm.call(t, &q);
            let (k, v) = self.keys_and_values(t, context, heads);
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: context.image.as_ref().map(|image| &image.mask),
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, context.own.attn, &call);
            out = t.reshape(&out, [batch, seq, q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            (out, weights)
        })
    }

    /// Keys and values of the image, [samples, kv heads, features, width].
    fn keys_and_values(&self, t: &Tape, context: &Context, heads: impl Fn(Tensor) -> Tensor) -> (Tensor, Tensor) {
        let cache = &context.own.cache;
        let Some(image) = &context.image else {
            let seen = cache.as_ref().and_then(KvCache::seen);
            return seen.unwrap_or_else(|| unreachable!("an image came before, with the first tokens"));
        };
        let k = self.k_proj.call(t, &image.states);
        let v = self.v_proj.call(t, &image.states);
        let (mut k, mut v) = (heads(k), heads(v));
        k = self.k_norm.call(t, &k);
        if let Some(cache) = cache {
            (k, v) = cache.update(t, &k, &v);
        }
        (k, v)
    }
}
