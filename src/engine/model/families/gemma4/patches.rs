//! Embedding of patches of images (`Gemma4UnifiedVisionEmbedder`).

use super::config::PatchEmbedding;
use crate::dtype::DType;
use crate::nn::{Builder, LayerNorm, Linear, PowerRmsNorm};
use crate::tape::{Module, Tape, Tensor};

/// `Gemma4UnifiedVisionEmbedder`.
pub struct PatchEmbedder {
    patch_ln1: LayerNorm,
    patch_dense: Linear,
    patch_ln2: LayerNorm,
    pos_embedding: Tensor,
    pos_norm: LayerNorm,
    multimodal_embedder: Embedder,
}

/// `Gemma4MultimodalEmbedder`, `Gemma4UnifiedMultimodalEmbedder`.
pub struct Embedder {
    module: Module,
    embedding_projection: Linear,
    norm: PowerRmsNorm,
}

impl Embedder {
    pub fn new(b: &Builder, width: u64, hidden: u64) -> Self {
        Self {
            module: b.module(),
            embedding_projection: Linear::new(b, "embedding_projection", width, hidden, false),
            norm: PowerRmsNorm::plain("embedding_pre_projection_norm"),
        }
    }

    /// Features [tokens, width] → [tokens, hidden].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let normed = self.norm.call(t, x);
            self.embedding_projection.call(t, &normed)
        })
    }
}

impl PatchEmbedder {
    pub fn new(b: &Builder, c: PatchEmbedding, hidden: u64) -> Self {
        Self {
            patch_ln1: LayerNorm::new(b, "patch_ln1", c.elements()),
            patch_dense: Linear::new(b, "patch_dense", c.elements(), c.width, true),
            patch_ln2: LayerNorm::new(b, "patch_ln2", c.width),
            pos_embedding: b.weight("pos_embedding", [c.positions, 2, c.width]),
            pos_norm: LayerNorm::new(b, "pos_norm", c.width),
            multimodal_embedder: b
                .tape()
                .scope("multimodal_embedder", || Embedder::new(b, c.width, hidden)),
        }
    }

    /// `get_image_features`: patches [images, patches, elements] and their places [images, patches, 2] → the features of
    /// each image, [tokens, hidden], of `valid` tokens in all.
    pub fn image_features(&self, t: &Tape, pixels: &Tensor, places: &Tensor, valid: u64) -> Vec<Tensor> {
        let [images, patches] = [pixels.size(0), pixels.size(1)];
        let (pooled, _last) = self.forward(t, pixels, places);
        let mask = {
            let each = t.compute(places, DType::Bool, "axes of valid patches");
            let mask = t.empty([images, patches], DType::Bool, "valid patches");
            drop(each);
            mask
        };
        let stripped = t.index_rows(&pooled, &mask, valid);
        {
            let counts = t.empty([images], DType::I64, "valid patches of each image");
            drop(t.compute(&mask, DType::I64, "mask as integers"));
            drop(counts);
        }
        let sizes: Vec<u64> = (0..images).map(|_| valid / images).collect();
        t.split(&stripped, 0, &sizes)
    }

    fn forward(&self, t: &Tape, pixels: &Tensor, places: &Tensor) -> (Tensor, Tensor) {
        let pixels = t.to_dtype(pixels, self.pos_embedding.dtype());
        let mut h = self.patch_ln1.call(t, &pixels);
        h = self.patch_dense.call(t, &h);
        h = self.patch_ln2.call(t, &h);
        let clamped = t.compute(places, DType::I64, "places from 0");
        let valid = {
            let marks = t.compute(places, DType::Bool, "axes of valid patches");
            t.compute(&marks, self.pos_embedding.dtype(), "axes of valid patches")
        };
        let axes = t.empty([2], DType::I64, "axes");
        let positions = {
            let product = {
                let looked_up = t.index_broadcast(&self.pos_embedding, &[clamped.clone(), axes.clone()]);
                t.mul(&looked_up, &t.unsqueeze(&valid, 3))
            };
            t.sum_dim(&product, 2)
        };
        h = t.add(&h, &positions);
        h = self.pos_norm.call(t, &h);
        let pooled = self.multimodal_embedder.call(t, &h);
        drop((positions, axes, valid, clamped, pixels));
        (pooled, h)
    }
}
