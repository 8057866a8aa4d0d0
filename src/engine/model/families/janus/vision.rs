//! Janus' vision tower (`transformers/models/janus/modeling_janus.py`).

use super::config::JanusVisionConfig;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::encoder::{Block, BlockConfig, BlockForm, BlockOrder, make_blocks, run_blocks};
use crate::nn::{Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// Form of the blocks of the tower.
const BLOCKS: BlockForm = BlockForm {
    attention: "self_attn",
    out_proj: "projection_layer",
    norms: ["layer_norm1", "layer_norm2"],
    order: BlockOrder::NormsFirst,
    query_first: true,
    splits_late: true,
    wide_softmax: true,
};

/// `JanusVisionModel`.
pub struct JanusVision {
    patch_weight: Tensor,
    patch_bias: Tensor,
    position_embedding: Embedding,
    position_ids: Tensor,
    layers: Vec<Numbered<Block>>,
    post_layernorm: LayerNorm,
}

impl JanusVision {
    pub fn new(b: &Builder, c: &JanusVisionConfig) -> Self {
        let (t, hidden, grid) = (b.tape(), c.shape.hidden, &c.grid);
        let blocks = BlockConfig {
            form: &BLOCKS,
            shape: c.shape,
            activation: c.activation,
            attention_dropout: c.attention_dropout,
            dropout: 0.0,
            qkv_bias: c.attention_bias,
        };
        let (patch_weight, patch_bias, position_embedding, position_ids) = t.scope("embeddings", || {
            let shape = [hidden, grid.channels, grid.patch, grid.patch];
            let weight = b.weight("patch_embedding.weight", shape);
            let bias = b.weight("patch_embedding.bias", [hidden]);
            let position = Embedding::new(b, "position_embedding", grid.patches(), hidden);
            let ids = b.buffer("position_ids", [1, grid.patches()], DType::I64);
            (weight, bias, position, ids)
        });
        Self {
            patch_weight,
            patch_bias,
            position_embedding,
            position_ids,
            layers: make_blocks(b, "encoder.layers", &blocks),
            post_layernorm: LayerNorm::new(b, "post_layernorm", hidden),
        }
    }

    /// Pixels [images, channels, side, side] → last hidden states [images, patches, hidden], and the norm of the first
    /// of each.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Tensor) {
        let embedded = t.scope("embeddings", || run.embedded(t, self.embed(t, pixels)));
        let encoded = run_blocks(t, run, &self.layers, &None, embedded.clone(), |_| {});
        let last = self.post_layernorm.call(t, &encoded);
        let first = t.select(&last, 1);
        let pooled = self.post_layernorm.call(t, &first);
        drop((encoded, embedded));
        (last, pooled)
    }

    fn embed(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let pixels = t.to_dtype(pixels, self.patch_weight.dtype());
        let patches = t.conv_patches(&pixels, &self.patch_weight, Some(&self.patch_bias));
        drop(pixels);
        let [images, hidden] = [patches.size(0), patches.size(1)];
        let flat = t.view(&patches, [images, hidden, patches.size(2) * patches.size(3)]);
        let embedded = t.transpose(&flat, 1, 2);
        drop(flat);
        let positions = self.position_embedding.forward(t, &self.position_ids);
        t.add(&embedded, &positions)
    }
}
