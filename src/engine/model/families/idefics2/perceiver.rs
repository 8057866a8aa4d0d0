//! Idefics2's perceiver (`transformers/models/idefics2/modeling_idefics2.py`).

use super::config::PerceiverConfig;
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::nn::{self, AttentionCall, Builder, Linear, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `Idefics2PerceiverResampler`.
pub struct Perceiver {
    module: Module,
    latents: Tensor,
    layers: Vec<Layer>,
    norm: RmsNorm,
}

struct Layer {
    input_latents_norm: RmsNorm,
    input_context_norm: RmsNorm,
    self_attn: CrossAttention,
    post_attention_layernorm: RmsNorm,
    mlp: Mlp,
}

/// Attention of latents to the context and themselves.
struct CrossAttention {
    module: Module,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    head_dim: u64,
    dropout: f64,
}

impl Perceiver {
    pub fn new(b: &Builder, c: &PerceiverConfig, hidden: u64) -> Self {
        let t = b.tape();
        Self {
            module: b.module(),
            latents: b.weight("latents", [c.latents, hidden]),
            layers: (0..c.layers as usize)
                .map(|i| t.layer("layers", i, || Layer::new(b, c, hidden)))
                .collect(),
            norm: RmsNorm::new(b, "norm", hidden),
        }
    }

    /// Context [images, patches, hidden] → [images, latents, hidden].
    pub fn call(&self, t: &Tape, attn: Attention, context: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let images = context.size(0);
            let [latents, hidden] = [self.latents.size(0), self.latents.size(1)];
            let expanded = t.expand(&t.unsqueeze(&self.latents, 0), [images, latents, hidden]);
            let of_latents = t.empty([images, latents], DType::Bool, "mask of the latents");
            let mask = t.empty([images, context.size(1) + latents], DType::Bool, "mask");
            // `create_bidirectional_mask` finds no padding.
            drop(t.empty([], DType::Bool, "all"));
            drop(mask);
            let mut h = expanded.clone();
            for (i, layer) in self.layers.iter().enumerate() {
                h = t.layer("layers", i, || layer.forward(t, attn, h.clone(), context.clone()));
            }
            let out = self.norm.call(t, &h);
            drop((h, expanded, of_latents));
            out
        })
    }
}

impl Layer {
    fn new(b: &Builder, c: &PerceiverConfig, hidden: u64) -> Self {
        let t = b.tape();
        let norm = |name| RmsNorm::new(b, name, hidden);
        let linear = |name, input, output| Linear::new(b, name, input, output, false);
        let (queries, keys) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        Self {
            input_latents_norm: norm("input_latents_norm"),
            input_context_norm: norm("input_context_norm"),
            self_attn: t.scope("self_attn", || CrossAttention {
                module: b.module(),
                q_proj: linear("q_proj", hidden, queries),
                k_proj: linear("k_proj", hidden, keys),
                v_proj: linear("v_proj", hidden, keys),
                o_proj: linear("o_proj", queries, hidden),
                head_dim: c.head_dim,
                dropout: c.attention_dropout,
            }),
            post_attention_layernorm: norm("post_attention_layernorm"),
            mlp: t.scope("mlp", || {
                Mlp::of_tower(b, [hidden, 4 * hidden], hidden, false, c.activation)
            }),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, latents: Tensor, context: Tensor) -> Tensor {
        let residual = latents.clone();
        let mut h = self.input_latents_norm.call(t, &latents);
        drop(latents);
        let context = self.input_context_norm.call(t, &context);
        let (out, _weights) = self.self_attn.call(t, attn, &h, &context);
        h = out;
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = self.post_attention_layernorm.call(t, &h);
        h = self.mlp.call(t, h);
        let out = t.add(&residual, &h);
        drop((h, residual, context));
        out
    }
}

impl CrossAttention {
    fn call(&self, t: &Tape, attn: Attention, latents: &Tensor, context: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let all = t.cat(&[context, latents], 1);
            let heads = |x: &Tensor| {
                let split = t.view(x, [x.size(0), x.size(1), x.last() / self.head_dim, self.head_dim]);
                t.transpose(&split, 1, 2)
            };
            let q = self.q_proj.call(t, latents);
            let k = self.k_proj.call(t, &all);
            let v = self.v_proj.call(t, &all);
            let (q, k, v) = (heads(&q), heads(&k), heads(&v));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [out.size(0), out.size(1), q.size(1) * self.head_dim]);
            out = self.o_proj.call(t, &out);
            drop(all);
            (out, weights)
        })
    }
}
