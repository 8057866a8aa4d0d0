//! `Cosmos3EdgeVisionModel`: SigLIP 2's tower on patches of images of any grid, one after the other.

use std::rc::Rc;

use super::config::Cosmos3EdgeVisionConfig;
use crate::model::config::EncoderShape;
use crate::model::forward::Run;
use crate::model::parts::encoder::Mlp;
use crate::model::parts::qwen_vl::{Attended, Layout, SegmentCall, Segments, attend_within, cu_seqlens};
use crate::nn::{Builder, LayerNorm, Linear, Numbered};
use crate::setup::Attention;
use crate::tape::{Module, Tape, Tensor};

/// `Cosmos3EdgeVisionModel`.
pub struct Tower {
    patch_embedding: Linear,
    /// Weight of `position_embedding`, [side², width].
    positions: Tensor,
    side: u64,
    layers: Vec<Numbered<Layer>>,
    post_layernorm: LayerNorm,
}

/// `Cosmos3EdgeVisionEncoderLayer`.
struct Layer {
    layer_norm1: LayerNorm,
    self_attn: SelfAttention,
    layer_norm2: LayerNorm,
    mlp: Mlp,
}

/// `Cosmos3EdgeVisionAttention`.
struct SelfAttention {
    module: Module,
    k_proj: Linear,
    v_proj: Linear,
    q_proj: Linear,
    out_proj: Linear,
    heads: u64,
}

impl Tower {
    pub fn new(b: &Builder, c: &Cosmos3EdgeVisionConfig) -> Self {
        let (t, p) = (b.tape(), &c.patches);
        let (patch_embedding, positions) = t.scope("embeddings", || {
            let patch = Linear::new(b, "patch_embedding", p.patch_elements(), c.width, true);
            let positions = t.scope("position_embedding", || b.weight("weight", [c.side * c.side, c.width]));
            (patch, positions)
        });
        let layer = |i| Numbered::new(b, "encoder.layers", i, || Rc::new(Layer::new(b, c)));
        Self {
            patch_embedding,
            positions,
            side: c.side,
            layers: (0..p.layers as usize).map(layer).collect(),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.width),
        }
    }

    /// Patches [patches, elements of a patch] → last hidden states [patches, width].
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, layout: &Layout, grid: &Tensor) -> Tensor {
        let embedded = t.scope("embeddings", || {
            let pixels = t.to_dtype(pixels, self.positions.dtype());
            let patches = self.patch_embedding.call(t, &pixels);
            drop(pixels);
            let positions = self.positions_of(t, layout);
            t.add(&patches, &positions)
        });
        let segments = Rc::new(Segments::of_frames(layout, cu_seqlens(t, layout, grid)));
        let mut h = embedded.clone();
        t.stack(&vec![0; self.layers.len()], &mut |i| {
            let (layer, segments, attn) = (self.layers[i].clone(), segments.clone(), run.attn);
            let forward = move |t: &Tape, x: Tensor| layer.forward(t, attn, &segments, x);
            // The caller's variable holds a layer's input until the layer returns.
            let input = h.clone();
            h = run.block(t, &self.layers[i], input, forward);
        });
        drop((embedded, segments));
        self.post_layernorm.call(t, &h)
    }

    /// `resize_positional_embeddings`: the learned positions at each image's grid, [patches, width].
    fn positions_of(&self, t: &Tape, layout: &Layout) -> Tensor {
        let (m, width) = (layout.merge, self.positions.size(1));
        let square = t.view(&self.positions, [self.side, self.side, width]);
        let learned = t.unsqueeze(&t.permute(&square, &[2, 0, 1]), 0);
        let mut of_images = Vec::with_capacity(layout.images().len());
        // One variable holds each step's result until the next replaces it, from one image to the next.
        let mut _by_block = None;
        for image in layout.images() {
            let [h, w] = [image.rows, image.columns];
            let by_block = {
                let resized = t.interpolate_antialiased(&learned, [h, w]);
                _by_block = None;
                let rows = t.permute(&t.squeeze(&resized, 0), &[1, 2, 0]);
                drop(resized);
                let rows = t.to_dtype(&rows, self.positions.dtype());
                let blocks = t.reshape(&rows, [h / m, m, w / m, m, width]);
                t.reshape(&t.transpose(&blocks, 1, 2), [h * w, width])
            };
            of_images.push(t.contiguous_copy(&by_block));
            _by_block = Some(by_block);
        }
        t.cat(&of_images.iter().collect::<Vec<_>>(), 0)
    }
}

impl Layer {
    fn new(b: &Builder, c: &Cosmos3EdgeVisionConfig) -> Self {
        let t = b.tape();
        let layer_norm1 = LayerNorm::new(b, "layer_norm1", c.width);
        let self_attn = t.scope("self_attn", || SelfAttention::new(b, c));
        let layer_norm2 = LayerNorm::new(b, "layer_norm2", c.width);
        let shape = EncoderShape {
            hidden: c.width,
            intermediate: c.intermediate,
            layers: c.patches.layers,
            heads: c.patches.heads,
        };
        let mlp = t.scope("mlp", || Mlp::new(b, shape, c.activation));
        Self {
            layer_norm1,
            self_attn,
            layer_norm2,
            mlp,
        }
    }

    /// [patches, width] → the same.
    fn forward(&self, t: &Tape, attn: Attention, segments: &Segments, x: Tensor) -> Tensor {
        let h = {
            let normed = self.layer_norm1.call(t, &x);
            let out = self.self_attn.call(t, attn, segments, &normed);
            drop(normed);
            t.add(&x, &out)
        };
        drop(x);
        let normed = self.layer_norm2.call(t, &h);
        let out = self.mlp.call(t, &normed);
        drop(normed);
        t.add(&h, &out)
    }
}

impl SelfAttention {
    fn new(b: &Builder, c: &Cosmos3EdgeVisionConfig) -> Self {
        let linear = |name| Linear::new(b, name, c.width, c.width, true);
        Self {
            module: b.module(),
            k_proj: linear("k_proj"),
            v_proj: linear("v_proj"),
            q_proj: linear("q_proj"),
            out_proj: linear("out_proj"),
            heads: c.patches.heads,
        }
    }

    fn call(&self, t: &Tape, attn: Attention, segments: &Segments, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let [patches, width] = [x.size(0), x.size(1)];
            let project = |proj: &Linear| {
                let projected = proj.call(t, x);
                t.reshape(&projected, [patches, self.heads, width / self.heads])
            };
            let q = project(&self.q_proj);
            let k = project(&self.k_proj);
            let v = project(&self.v_proj);
            let [q, k, v] = [q, k, v].map(|x| t.unsqueeze(&t.transpose(&x, 0, 1), 0));
            let call = SegmentCall {
                qkv: [&q, &k, &v],
                dropout: 0.0,
                keeps_weights: false,
            };
            let Attended { out, _locals, .. } = attend_within(t, attn, segments, &call);
            let (_lengths, parts) = _locals;
            // The outputs of segments are no variable, their lengths are.
            drop(parts);
            let out = t.reshape(&out, [patches, width]);
            self.out_proj.call(t, &out)
        })
    }
}
