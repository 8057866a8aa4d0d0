//! Ovis2's vision tower (`transformers/models/ovis2/modeling_ovis2.py`).

use std::rc::Rc;

use super::config::Ovis2VisionConfig;
use crate::dtype::DType;
use crate::model::decoder::mlp::Mlp;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, Embedding, LayerNorm, Linear, Numbered, RmsNorm};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `Ovis2VisionModel`.
pub struct Ovis2Vision {
    embeddings: Embeddings,
    layers: Vec<Numbered<Layer>>,
    rms_norm: RmsNorm,
    head_linear: Linear,
    head_norm: LayerNorm,
    stride: u64,
}

/// `Ovis2VisionEmbeddings`.
struct Embeddings {
    module: Module,
    patch_weight: Tensor,
    patch_bias: Tensor,
    position_embedding: Embedding,
    position_ids: Tensor,
    rms_norm: RmsNorm,
}

/// `Ovis2VisionEncoderLayer`.
struct Layer {
    attention: SelfAttention,
    ffn: Mlp,
    rms_norm1: RmsNorm,
    rms_norm2: RmsNorm,
}

struct SelfAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
    dropout: f64,
}

impl Ovis2Vision {
    pub fn new(b: &Builder, c: &Ovis2VisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        let (embeddings, layers, rms_norm) = t.scope("transformer", || {
            let embeddings = t.scope("embeddings", || Embeddings::new(b, c));
            let layers = (0..c.shape.layers as usize)
                .map(|i| Numbered::new(b, "encoder.layers", i, || Rc::new(Layer::new(b, c))))
                .collect();
            (embeddings, layers, RmsNorm::new(b, "rms_norm", hidden))
        });
        let words = c.words - c.indicators;
        Self {
            embeddings,
            layers,
            rms_norm,
            head_linear: Linear::new(b, "head_linear", hidden * c.stride * c.stride, words, false),
            head_norm: LayerNorm::new(b, "head_norm", words),
            stride: c.stride,
        }
    }

    /// Pixels [images, channels, side, side] → probabilities of visual words [images, tokens, words], and the features from
    /// which the head computes them.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Tensor) {
        let last = t.scope("transformer", || self.transform(t, run, pixels));
        let features = self.merged(t, last.clone());
        let mut logits = self.head_linear.call(t, &features);
        logits = self.head_norm.call(t, &logits);
        let words = t.softmax(&logits, None);
        drop((logits, last));
        (words, features)
    }

    fn transform(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let embedded = self.embeddings.call(t, pixels);
        let mut h = embedded.clone();
        for layer in &self.layers {
            let (block, attn) = (layer.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, x);
            h = run.block(t, layer, h.clone(), forward);
        }
        let out = self.rms_norm.call(t, &h);
        drop((h, embedded));
        out
    }

    /// Joins the features of each square of `stride` by `stride` patches into one position.
    fn merged(&self, t: &Tape, x: Tensor) -> Tensor {
        let n = self.stride;
        if n == 1 {
            return x;
        }
        let [images, patches, hidden] = [x.size(0), x.size(1), x.size(2)];
        let side = patches.isqrt();
        // `F.pad` copies even where it pads by 0.
        let mut h = t.pad_end(&x, 1, 0);
        drop(x);
        h = t.reshape(&h, [images, side / n, n, side / n, n, hidden]);
        h = t.permute(&h, &[0, 1, 3, 2, 4, 5]);
        t.reshape(&h, [images, patches / (n * n), n * n * hidden])
    }
}

impl Embeddings {
    fn new(b: &Builder, c: &Ovis2VisionConfig) -> Self {
        let (hidden, grid) = (c.shape.hidden, &c.grid);
        let shape = [hidden, grid.channels, grid.patch, grid.patch];
        Self {
            module: b.module(),
            patch_weight: b.weight("patch_embedding.weight", shape),
            patch_bias: b.weight("patch_embedding.bias", [hidden]),
            position_embedding: Embedding::new(b, "position_embedding", grid.patches(), hidden),
            position_ids: b.buffer("position_ids", [1, grid.patches()], DType::I64),
            rms_norm: RmsNorm::new(b, "rms_norm", hidden),
        }
    }

    fn call(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let pixels = t.to_dtype(pixels, self.patch_weight.dtype());
            let patches = t.conv_patches(&pixels, &self.patch_weight, Some(&self.patch_bias));
            drop(pixels);
            let flat = t.view(
                &patches,
                [patches.size(0), patches.size(1), patches.size(2) * patches.size(3)],
            );
            let mut h = t.transpose(&flat, 1, 2);
            drop(flat);
            h = self.rms_norm.call(t, &h);
            let positions = self.position_embedding.forward(t, &self.position_ids);
            let out = t.add(&h, &positions);
            drop((positions, h, patches));
            out
        })
    }
}

impl Layer {
    fn new(b: &Builder, c: &Ovis2VisionConfig) -> Self {
        let (t, hidden) = (b.tape(), c.shape.hidden);
        let project = |name| Linear::new(b, name, hidden, hidden, c.qkv_bias);
        Self {
            attention: t.scope("attention", || SelfAttention {
                module: b.module(),
                k_proj: project("k_proj"),
                v_proj: project("v_proj"),
                q_proj: project("q_proj"),
                out_proj: project("out_proj"),
                heads: c.shape.heads,
                dropout: c.attention_dropout,
            }),
            ffn: t.scope("ffn", || {
                Mlp::of_tower(b, [hidden, c.shape.intermediate], hidden, c.mlp_bias, c.activation)
            }),
            rms_norm1: RmsNorm::new(b, "rms_norm1", hidden),
            rms_norm2: RmsNorm::new(b, "rms_norm2", hidden),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, x: Tensor) -> Tensor {
        let mut normed = self.rms_norm1.call(t, &x);
        let (attended, _weights) = self.attention.call(t, attn, &normed);
        let mut h = t.add(&x, &attended);
        drop(x);
        normed = self.rms_norm2.call(t, &h);
        let out = self.ffn.call(t, normed.clone());
        h = t.add(&h, &out);
        drop((normed, attended, out));
        h
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, attn: Attention, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, patches, hidden] = [x.size(0), x.size(1), x.size(2)];
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, patches, self.heads, hidden / self.heads]), 1, 2);
            let q = heads(self.q_proj.call(t, x));
            let k = heads(self.k_proj.call(t, x));
            let v = heads(self.v_proj.call(t, x));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: Some(DType::F32),
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, patches, hidden]);
            out = self.out_proj.call(t, &out);
            (out, weights)
        })
    }
}
