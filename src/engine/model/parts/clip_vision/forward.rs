//! CLIP's vision tower (`transformers/models/clip/modeling_clip.py`).

use super::config::ClipVisionConfig;
use crate::dtype::DType;
use crate::model::config::EncoderShape;
use crate::model::forward::Run;
use crate::model::parts::encoder::{Block, BlockConfig, BlockForm, BlockOrder, make_blocks, run_blocks};
use crate::nn::{Builder, Embedding, LayerNorm, Numbered};
use crate::tape::{Tape, Tensor};

/// Form of the blocks of CLIP's towers.
pub(crate) const BLOCKS: BlockForm = BlockForm {
    attention: "self_attn",
    out_proj: "out_proj",
    norms: ["layer_norm1", "layer_norm2"],
    order: BlockOrder::PartsFirst,
    query_first: false,
    splits_late: true,
    wide_softmax: true,
};

/// `CLIPVisionModel`.
pub struct ClipVision {
    class_embedding: Tensor,
    patch_embedding: Tensor,
    position_embedding: Embedding,
    position_ids: Tensor,
    pre_layrnorm: LayerNorm,
    layers: Vec<Numbered<Block>>,
    post_layernorm: LayerNorm,
    /// True if it is a model of its own, whose embeddings can be made to require gradients.
    is_model: bool,
}

/// Output of the tower.
pub struct ClipVisionOutput {
    /// Output of the last block, [images, positions, hidden].
    pub last: Tensor,
    /// The last block's class token after the last norm, [images, hidden].
    pub pooled: Tensor,
}

fn blocks(c: &ClipVisionConfig, form: &'static BlockForm) -> BlockConfig {
    BlockConfig {
        form,
        shape: EncoderShape {
            hidden: c.hidden,
            intermediate: c.intermediate,
            layers: c.layers,
            heads: c.heads,
        },
        activation: c.activation,
        attention_dropout: c.attention_dropout,
        dropout: 0.0,
        qkv_bias: true,
    }
}

impl ClipVision {
    pub fn new(b: &Builder, c: &ClipVisionConfig) -> Self {
        Self::with_blocks(b, c, &BLOCKS)
    }

    /// Makes a tower with blocks of another form.
    pub fn with_blocks(b: &Builder, c: &ClipVisionConfig, form: &'static BlockForm) -> Self {
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
            layers: make_blocks(b, "encoder.layers", &blocks(c, form)),
            post_layernorm: LayerNorm::new(b, "post_layernorm", c.hidden),
            is_model: true,
        }
    }

    /// Makes it a plain module, whose embeddings nothing makes require gradients.
    pub fn without_hook(self) -> Self {
        Self {
            is_model: false,
            ..self
        }
    }

    /// Pixels [images, 3, side, side] → the last hidden states. `see` gets the embedding and the output of each block.
    pub fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, see: impl FnMut(&Tensor)) -> ClipVisionOutput {
        let (last, embedded) = self.hidden(t, run, pixels, see);
        let class = t.select(&last, 1);
        let pooled = self.normed(t, &class);
        drop(embedded);
        ClipVisionOutput { last, pooled }
    }

    /// Pixels [images, 3, side, side] → all hidden states after the last norm.
    pub fn all_normed(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (last, embedded) = self.hidden(t, run, pixels, |_| ());
        let normed = self.normed(t, &last);
        drop(embedded);
        normed
    }

    /// The output of the last block, and the input of the first, which the caller holds until it returns.
    fn hidden(&self, t: &Tape, run: &Run, pixels: &Tensor, mut see: impl FnMut(&Tensor)) -> (Tensor, Tensor) {
        let embedded = t.scope("embeddings", || self.embed(t, run, pixels));
        let h = self.pre_layrnorm.call(t, &embedded);
        drop(embedded);
        see(&h);
        let last = run_blocks(t, run, &self.layers, &None, h.clone(), see);
        (last, h)
    }

    /// Runs the last norm.
    pub fn normed(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.post_layernorm.call(t, x)
    }

    fn embed(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let images = pixels.size(0);
        let hidden = self.patch_embedding.size(0);
        let pixels = t.to_dtype(pixels, t.type_of(&self.patch_embedding));
        let mut patches = t.conv_patches(&pixels, &self.patch_embedding, None);
        if self.is_model {
            patches = run.embedded(t, patches);
        }
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
