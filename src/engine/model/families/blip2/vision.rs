//! BLIP-2's vision tower (`transformers/models/blip_2/modeling_blip_2.py`).

use std::rc::Rc;

use super::config::Blip2VisionConfig;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `Blip2VisionModel`.
pub struct Blip2Vision {
    embeddings: Embeddings,
    layers: Vec<Numbered<Layer>>,
    post_layernorm: LayerNorm,
}

/// Output of the tower.
pub struct Blip2VisionOutput {
    /// Last hidden states after the last norm, [images, positions, hidden].
    pub last: Tensor,
    /// The class token's hidden state, normalised once more, [images, hidden].
    pub pooled: Tensor,
}

struct Embeddings {
    module: Module,
    class_embedding: Tensor,
    patch_weight: Tensor,
    patch_bias: Tensor,
    position_embedding: Tensor,
}

struct Layer {
    self_attn: SelfAttention,
    layer_norm1: LayerNorm,
    mlp: Mlp,
    layer_norm2: LayerNorm,
}

struct SelfAttention {
    module: Module,
    qkv: Linear,
    projection: Linear,
    heads: u64,
    dropout: f64,
    written_out: bool,
}

struct Mlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl Blip2Vision {
    pub fn new(b: &Builder, c: &Blip2VisionConfig) -> Self {
        let t = b.tape();
        Self {
            embeddings: t.scope("embeddings", || Embeddings::new(b, c)),
            layers: (0..c.shape.layers as usize)
                .map(|i| Numbered::new(b, "encoder.layers", i, || Rc::new(Layer::new(b, c))))
                .collect(),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.shape.hidden),
        }
    }

    /// Pixels [images, 3, side, side] → hidden states.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Blip2VisionOutput {
        let embedded = self.embeddings.call(t, run, pixels);
        let mut h = embedded.clone();
        for layer in &self.layers {
            let (block, attn) = (layer.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, x);
            h = run.block(t, layer, h, forward);
        }
        let last = self.post_layernorm.call(t, &h);
        let class = t.select(&last, 1);
        let pooled = self.post_layernorm.call(t, &class);
        drop((h, embedded));
        Blip2VisionOutput { last, pooled }
    }
}

impl Embeddings {
    fn new(b: &Builder, c: &Blip2VisionConfig) -> Self {
        let (width, patch) = (c.shape.hidden, c.grid.patch);
        Self {
            module: b.module(),
            class_embedding: b.weight("class_embedding", [1, 1, width]),
            patch_weight: b.weight("patch_embedding.weight", [width, 3, patch, patch]),
            patch_bias: b.weight("patch_embedding.bias", [width]),
            position_embedding: b.weight("position_embedding", [1, c.grid.patches() + 1, width]),
        }
    }

    fn call(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        self.module.call(t, || {
            let [images, width] = [pixels.size(0), self.patch_weight.size(0)];
            let mut patches = {
                let pixels = t.to_dtype(pixels, self.patch_weight.dtype());
                t.conv_patches(&pixels, &self.patch_weight, Some(&self.patch_bias))
            };
            patches = {
                let flat = t.view(&patches, [images, width, patches.size(2) * patches.size(3)]);
                t.transpose(&flat, 1, 2)
            };
            let class = t.expand(&self.class_embedding, [images, 1, width]);
            let mut embeddings = t.cat(&[&class, &patches], 1);
            embeddings = t.add(&embeddings, &self.position_embedding);
            drop(patches);
            run.embedded(t, embeddings)
        })
    }
}

impl Layer {
    fn new(b: &Builder, c: &Blip2VisionConfig) -> Self {
        let t = b.tape();
        let (hidden, intermediate) = (c.shape.hidden, c.shape.intermediate);
        Self {
            self_attn: t.scope("self_attn", || SelfAttention::new(b, c)),
            layer_norm1: LayerNorm::new(b, "layer_norm1", hidden),
            mlp: t.scope("mlp", || Mlp {
                module: b.module(),
                fc1: Linear::new(b, "fc1", hidden, intermediate, true),
                fc2: Linear::new(b, "fc2", intermediate, hidden, true),
                activation: c.activation,
            }),
            layer_norm2: LayerNorm::new(b, "layer_norm2", hidden),
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, x: Tensor) -> Tensor {
        let residual = x.clone();
        let mut h = self.layer_norm1.call(t, &x);
        drop(x);
        let (out, _weights) = self.self_attn.call(t, attn, &h);
        h = out;
        h = t.add(&h, &residual);
        let residual = h.clone();
        h = self.layer_norm2.call(t, &h);
        h = self.mlp.call(t, &h);
        t.add(&h, &residual)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Blip2VisionConfig) -> Self {
        let width = c.shape.hidden;
        Self {
            module: b.module(),
            qkv: Linear::new(b, "qkv", width, 3 * width, c.qkv_bias),
            projection: Linear::new(b, "projection", width, width, true),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
            written_out: c.written_out,
        }
    }

    /// `BlipAttention`: the scores live as long as the forward.
    fn written_out(
        &self,
        t: &Tape,
        [q, k, v]: [&Tensor; 3],
        [batch, seq, width]: [u64; 3],
    ) -> (Tensor, Option<Tensor>) {
        let scores = {
            let product = t.matmul(q, &t.transpose(k, 2, 3));
            t.scale(&product)
        };
        let mut weights = t.softmax(&scores, None);
        weights = t.dropout(&weights, self.dropout);
        let mut out = t.permute(&t.matmul(&weights, v), &[0, 2, 1, 3]);
        out = t.reshape(&out, [batch, seq, width]);
        let projected = self.projection.call(t, &out);
        drop((scores, out));
        (projected, Some(weights))
    }

    fn call(&self, t: &Tape, attn: Attention, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, width] = [x.size(0), x.size(1), x.size(2)];
            let mixed = {
                let mixed = self.qkv.call(t, x);
                let split = t.view(&mixed, [batch, seq, 3, self.heads, width / self.heads]);
                t.permute(&split, &[2, 0, 3, 1, 4])
            };
            let [q, k, v] = [(); 3].map(|()| t.select(&mixed, 0));
            if self.written_out {
                return self.written_out(t, [&q, &k, &v], [batch, seq, width]);
            }
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: None,
            };
            let (mut out, weights) = nn::attention(t, attn, &call);
            out = t.reshape(&out, [batch, seq, width]);
            out = self.projection.call(t, &out);
            (out, weights)
        })
    }
}

impl Mlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = self.fc1.call(t, x);
            h = nn::activate(t, self.activation, h);
            self.fc2.call(t, &h)
        })
    }
}
