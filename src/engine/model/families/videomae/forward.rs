//! VideoMAE for video classification (`transformers/models/videomae/modeling_videomae.py`).

use std::rc::Rc;

use super::config::VideoMaeConfig;
use crate::model::config::Activation;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, AttentionCall, Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Component, Module, Tape, Tensor};

/// `VideoMAEForVideoClassification`.
pub struct VideoMae {
    patch_embeddings: PatchEmbeddings,
    layers: Vec<Numbered<Layer>>,
    /// Last norm of the model; `None` with mean pooling.
    layernorm: Option<LayerNorm>,
    /// Norm of the head; `None` without mean pooling.
    fc_norm: Option<LayerNorm>,
    classifier: Linear,
    /// Frames, channels, height, width of one video.
    video: [u64; 4],
}

struct PatchEmbeddings {
    weight: Tensor,
    bias: Tensor,
}

struct Layer {
    attention: SelfAttention,
    output_dense: Linear,
    intermediate_dense: Linear,
    final_dense: Linear,
    layernorm_before: LayerNorm,
    layernorm_after: LayerNorm,
    activation: Activation,
    dropout: f64,
}

struct SelfAttention {
    module: Module,
    query: Linear,
    key: Linear,
    value: Linear,
    heads: u64,
    dropout: f64,
}

impl VideoMae {
    pub fn new(b: &Builder, c: &VideoMaeConfig) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let (patch_embeddings, layers, layernorm) = t.component("videomae", Component::VisionTower, || {
            let patches = t.scope("embeddings.patch_embeddings.projection", || PatchEmbeddings {
                weight: b.weight(
                    "weight",
                    [hidden, c.grid.channels, c.tubelet, c.grid.patch, c.grid.patch],
                ),
                bias: b.weight("bias", [hidden]),
            });
            let layers = (0..c.shape.layers as usize)
                .map(|i| Numbered::new(b, "encoder.layer", i, || Rc::new(Layer::new(b, c))))
                .collect();
            let norm = (!c.mean_pooling).then(|| LayerNorm::new(b, "layernorm", hidden));
            (patches, layers, norm)
        });
        let (fc_norm, classifier) = t.component("", Component::Head, || {
            let norm = c.mean_pooling.then(|| LayerNorm::new(b, "fc_norm", hidden));
            (norm, Linear::new(b, "classifier", hidden, c.labels, true))
        });
        Self {
            patch_embeddings,
            layers,
            layernorm,
            fc_norm,
            classifier,
            video: [c.frames, c.grid.channels, c.grid.image, c.grid.image],
        }
    }

    /// Pixels [batch, frames, channels, side, side] → [batch, positions, hidden].
    fn hidden(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let embedded = t.scope("embeddings", || self.embed(t, pixels));
        let mut h = embedded.clone();
        for layer in &self.layers {
            let (block, attn) = (layer.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| block.forward(t, attn, x);
            h = run.block(t, layer, h.clone(), forward);
        }
        match &self.layernorm {
            Some(norm) => norm.call(t, &h),
            None => h,
        }
    }

    fn embed(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let embedded = self.patch_embeddings.forward(t, pixels);
        // The table of sines is made on the CPU: `type_as` copies it to the GPU, and `to(copy=True)` copies it again.
        let table = {
            let shape = [1, embedded.size(1), embedded.size(2)];
            let moved = t.empty(shape, embedded.dtype(), "position embeddings");
            t.compute(&moved, moved.dtype(), "position embeddings, copied")
        };
        t.add(&embedded, &table)
    }
}

impl Forward for VideoMae {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [frames, channels, height, width] = self.video;
        Batch::of_classes(t, run, &[run.setup.batch, frames, channels, height, width])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(pixels), Some(labels)) = (&batch.pixels, &batch.labels) else {
            unreachable!("a batch to classify has pixels and labels")
        };
        let h = t.component("videomae", Component::VisionTower, || self.hidden(t, run, pixels));
        t.component("", Component::Head, || {
            let pooled = match &self.fc_norm {
                Some(norm) => {
                    let mean = t.mean(&h, 1);
                    norm.call(t, &mean)
                }
                None => t.select(&h, 1),
            };
            let logits = self.classifier.call(t, &pooled);
            let loss = t.scope("loss", || nn::classification_loss(t, &logits, labels));
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}

impl PatchEmbeddings {
    /// [batch, frames, channels, side, side] → [batch, positions, hidden]; each position covers one patch over several
    /// frames.
    fn forward(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let pixels = t.permute(pixels, &[0, 2, 1, 3, 4]);
        let grid = t.conv_patches(&pixels, &self.weight, Some(&self.bias));
        let positions = grid.size(2) * grid.size(3) * grid.size(4);
        let flat = t.view(&grid, [grid.size(0), grid.size(1), positions]);
        t.transpose(&flat, 1, 2)
    }
}

impl Layer {
    fn new(b: &Builder, c: &VideoMaeConfig) -> Self {
        let (hidden, intermediate) = (c.shape.hidden, c.shape.intermediate);
        let linear = |name, i, o| Linear::new(b, name, i, o, true);
        let qkv = |name| Linear::new(b, name, hidden, hidden, c.qkv_bias);
        let t = b.tape();
        let attention = || SelfAttention {
            module: b.module(),
            query: qkv("query"),
            key: qkv("key"),
            value: qkv("value"),
            heads: c.shape.heads,
            dropout: c.attention_dropout,
        };
        let dense = |name, i, o| t.scope(name, || linear("dense", i, o));
        let (attention, output_dense) = t.scope("attention", || {
            (t.scope("attention", attention), dense("output", hidden, hidden))
        });
        Self {
            attention,
            output_dense,
            intermediate_dense: dense("intermediate", hidden, intermediate),
            final_dense: dense("output", intermediate, hidden),
            layernorm_before: LayerNorm::new(b, "layernorm_before", hidden),
            layernorm_after: LayerNorm::new(b, "layernorm_after", hidden),
            activation: c.activation,
            dropout: c.hidden_dropout,
        }
    }

    fn forward(&self, t: &Tape, attn: Attention, mut h: Tensor) -> Tensor {
        let normed = self.layernorm_before.call(t, &h);
        let attended = t.scope("attention", || self.attend(t, attn, &normed));
        h = t.add(&attended, &h);
        let mut out = self.layernorm_after.call(t, &h);
        out = t.scope("intermediate", || {
            let out = self.intermediate_dense.call(t, &out);
            nn::activate(t, self.activation, out)
        });
        t.scope("output", || {
            let projected = self.final_dense.call(t, &out);
            let dropped = t.dropout(&projected, self.dropout);
            drop(projected);
            t.add(&dropped, &h)
        })
    }

    fn attend(&self, t: &Tape, attn: Attention, x: &Tensor) -> Tensor {
        let (out, _weights) = self.attention.call(t, attn, x);
        t.scope("output", || {
            let projected = self.output_dense.call(t, &out);
            t.dropout(&projected, self.dropout)
        })
    }
}

impl SelfAttention {
    fn call(&self, t: &Tape, attn: Attention, x: &Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
            let heads = |x: Tensor| t.transpose(&t.view(&x, [batch, seq, self.heads, hidden / self.heads]), 1, 2);
            let k = heads(self.key.call(t, x));
            let v = heads(self.value.call(t, x));
            let q = heads(self.query.call(t, x));
            let call = AttentionCall {
                q: &q,
                k: &k,
                v: &v,
                mask: None,
                dropout: self.dropout,
                softmax: None,
            };
            let (out, weights) = nn::attention(t, attn, &call);
            (t.reshape(&out, [batch, seq, hidden]), weights)
        })
    }
}
