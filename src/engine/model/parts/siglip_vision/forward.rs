//! SigLIP's vision tower (`transformers/models/siglip/modeling_siglip.py`).

use super::config::SiglipVisionConfig;
use super::head::PoolingHead;
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::model::parts::encoder::{Block, BlockConfig, BlockForm, BlockOrder, make_blocks, run_blocks};
use crate::nn::{Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// Form of the blocks of SigLIP's towers.
pub(crate) const BLOCKS: BlockForm = BlockForm {
    attention: "self_attn",
    out_proj: "out_proj",
    norms: ["layer_norm1", "layer_norm2"],
    order: BlockOrder::NormsFirst,
    query_first: false,
    splits_late: false,
    wide_softmax: true,
};

/// `SiglipVisionModel`.
pub struct SiglipVision {
    patch_weight: Tensor,
    patch_bias: Tensor,
    position_embedding: Embedding,
    position_ids: Tensor,
    layers: Vec<Numbered<Block>>,
    post_layernorm: LayerNorm,
    head: Option<PoolingHead>,
}

impl SiglipVision {
    pub fn new(b: &Builder, c: &SiglipVisionConfig) -> Self {
        let t = b.tape();
        let (hidden, grid) = (c.shape.hidden, &c.grid);
        let (patch_weight, patch_bias, position_embedding, position_ids) = t.scope("embeddings", || {
            let weight = b.weight(
                "patch_embedding.weight",
                [hidden, grid.channels, grid.patch, grid.patch],
            );
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
            layers: make_blocks(b, "encoder.layers", &blocks(c)),
            post_layernorm: LayerNorm::new(b, "post_layernorm", hidden),
            head: c.head.then(|| PoolingHead::new(b, c.shape, c.activation)),
        }
    }

    /// Pixels [images, channels, side, side] → last hidden states [images, patches, hidden], and the pooled output of
    /// the head, [images, hidden], if there is one.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Option<Tensor>) {
        self.forward_seen(t, run, pixels, |_| {})
    }

    /// Runs the tower as [`Self::forward`] does; `see` gets the embedding and the output of each block.
    pub fn forward_seen(
        &self,
        t: &Tape,
        run: &Run,
        pixels: &Tensor,
        mut see: impl FnMut(&Tensor),
    ) -> (Tensor, Option<Tensor>) {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels));
        see(&embedded);
        let encoded = run_blocks(t, run, &self.layers, &None, embedded.clone(), see);
        let last = self.post_layernorm.call(t, &encoded);
        let pooled = self.head.as_ref().map(|head| head.call(t, &last));
        drop(embedded);
        (last, pooled)
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let pixels = t.to_dtype(pixels, t.type_of(&self.patch_weight));
        let patches = run.embedded(t, t.conv_patches(&pixels, &self.patch_weight, Some(&self.patch_bias)));
        drop(pixels);
        let [images, hidden] = [patches.size(0), patches.size(1)];
        let flat = t.view(&patches, [images, hidden, patches.size(2) * patches.size(3)]);
        let embedded = t.transpose(&flat, 1, 2);
        drop(flat);
        let positions = self.position_embedding.forward(t, &self.position_ids);
        t.add(&embedded, &positions)
    }
}

fn blocks(c: &SiglipVisionConfig) -> BlockConfig {
    BlockConfig {
        form: &BLOCKS,
        shape: c.shape,
        activation: c.activation,
        attention_dropout: c.attention_dropout,
        dropout: 0.0,
        qkv_bias: true,
    }
}
