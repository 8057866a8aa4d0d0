//! CLIP's vision tower (`transformers/models/clip/modeling_clip.py`).

use std::rc::Rc;

use super::Run;
use crate::dtype::DType;
use crate::model::config::{Activation, ClipVisionConfig};
use crate::nn::{self, AttentionCall, Builder, Embedding, LayerNorm, Linear};
use crate::setup::Attention;
use crate::tape::{Tape, Tensor};

/// `CLIPVisionModel`.
pub struct ClipVision {
    class_embedding: Tensor,
    patch_embedding: Tensor,
    position_embedding: Embedding,
    position_ids: Tensor,
    pre_layrnorm: LayerNorm,
    layers: Vec<Rc<Layer>>,
    post_layernorm: LayerNorm,
}

/// Hidden states after the embedding and after each block, and the pooled one.
pub struct ClipVisionOutput {
    /// [images, positions, hidden] each; the first is the embedding.
    pub hidden_states: Vec<Tensor>,
    /// [images, hidden].
    pub pooled: Tensor,
}

pub struct Layer {
    self_attn: SelfAttention,
    layer_norm1: LayerNorm,
    mlp: Mlp,
    layer_norm2: LayerNorm,
}

struct SelfAttention {
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

struct Mlp {
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl ClipVision {
    pub fn new(b: &Builder, c: &ClipVisionConfig) -> Self {
        let t = b.tape();
        let (class_embedding, patch_embedding, position_embedding, position_ids) = t.scope("embeddings", || {
            let class = b.weight("class_embedding", [c.hidden]);
            let patch = b.weight("patch_embedding.weight", [c.hidden, c.channels, c.patch, c.patch]);
            let position = Embedding::new(b, "position_embedding", c.positions(), c.hidden);
            (
                class,
                patch,
                position,
                b.buffer("position_ids", [1, c.positions()], DType::I64),
            )
        });
        Self {
            class_embedding,
            patch_embedding,
            position_embedding,
            position_ids,
            pre_layrnorm: LayerNorm::new(b, "pre_layrnorm", c.hidden),
            layers: (0..c.layers as usize)
                .map(|i| t.layer("encoder.layers", i, || Rc::new(Layer::new(b, c))))
                .collect(),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.hidden),
        }
    }

    /// Pixels [images, 3, side, side] → hidden states.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> ClipVisionOutput {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels));
        let h = t.scope("pre_layrnorm", || self.pre_layrnorm.forward(t, &embedded));
        drop(embedded);
        let mut hidden_states = vec![h];
        for (i, layer) in self.layers.iter().enumerate() {
            let (layer, attn) = (layer.clone(), run.attn);
            let x = hidden_states[i].clone();
            let forward = move |t: &Tape, x: Tensor| layer.forward(t, attn, x);
            let out = t.layer("encoder.layers", i, || {
                if run.checkpointing {
                    t.checkpoint(x, Rc::new(forward))
                } else {
                    forward(t, x)
                }
            });
            hidden_states.push(out);
        }
        let last = &hidden_states[self.layers.len()];
        let class = t.select(last, 1);
        let pooled = t.scope("post_layernorm", || self.post_layernorm.forward(t, &class));
        ClipVisionOutput { hidden_states, pooled }
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let images = pixels.size(0);
        let hidden = self.patch_embedding.size(0);
        let pixels = t.to_dtype(pixels, self.patch_embedding.dtype());
        let mut patches = run.embedded(t, t.conv_patches(&pixels, &self.patch_embedding, None));
        drop(pixels);
        let flat = t.view(&patches, [images, hidden, patches.size(2) * patches.size(3)]);
        patches = t.transpose(&flat, 1, 2);
        drop(flat);
        let class = t.expand(&self.class_embedding, [images, 1, hidden]);
        let embedded = t.cat(&[&class, &patches], 1);
        let positions = self.position_embedding.forward(t, &self.position_ids);
        let out = t.add(&embedded, &positions);
        drop((embedded, positions, patches));
        out
    }
}

impl Layer {
    fn new(b: &Builder, c: &ClipVisionConfig) -> Self {
        let t = b.tape();
        let linear = |name, i, o| Linear::new(b, name, i, o, true);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention {
                k_proj: linear("k_proj", c.hidden, c.hidden),
                v_proj: linear("v_proj", c.hidden, c.hidden),
                q_proj: linear("q_proj", c.hidden, c.hidden),
                out_proj: linear("out_proj", c.hidden, c.hidden),
                heads: c.heads,
                dropout: c.attention_dropout,
            }),
            layer_norm1: LayerNorm::new(b, "layer_norm1", c.hidden),
            mlp: t.scope("mlp", || Mlp {
                fc1: linear("fc1", c.hidden, c.intermediate),
                fc2: linear("fc2", c.intermediate, c.hidden),
                activation: c.activation,
            }),
            layer_norm2: LayerNorm::new(b, "layer_norm2", c.hidden),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = t.scope("layer_norm1", || self.layer_norm1.forward(t, &x));
        drop(x);
        let (out, _weights) = t.scope("self_attn", || self.self_attn.forward(t, attn, h));
        h = out;
        h = t.add(&residual, &h);
        let residual = h.clone();
        h = t.scope("layer_norm2", || self.layer_norm2.forward(t, &h));
        h = t.scope("mlp", || self.mlp.forward(t, &h));
        t.add(&residual, &h)
    }
}

impl SelfAttention {
    fn forward(&self, t: &Tape, attn: Attention, x: Tensor) -> (Tensor, Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        let q = t.scope("q_proj", || self.q_proj.forward(t, &x));
        let k = t.scope("k_proj", || self.k_proj.forward(t, &x));
        let v = t.scope("v_proj", || self.v_proj.forward(t, &x));
        let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
        let (q, k, v) = (heads(q), heads(k), heads(v));
        let call = AttentionCall {
            q: &q,
            k: &k,
            v: &v,
            mask: None,
            dropout: self.dropout,
            softmax: Some(DType::F32),
        };
        let (mut out, weights) = nn::attention(t, attn, &call);
        out = t.reshape(&out, [batch, seq, hidden]);
        out = t.scope("out_proj", || self.out_proj.forward(t, &out));
        (out, weights)
    }
}

impl Mlp {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("fc1", || self.fc1.forward(t, x));
        h = nn::activate(t, self.activation, h);
        t.scope("fc2", || self.fc2.forward(t, &h))
    }
}
