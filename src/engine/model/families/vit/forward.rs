//! ViT for image classification (`transformers/models/vit/modeling_vit.py`).

use super::config::VitConfig;
use crate::model::config::PatchGrid;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::encoder::{Block, BlockConfig, BlockForm, BlockOrder, make_blocks, run_blocks};
use crate::nn::{self, Builder, LayerNorm, Linear, Numbered};
use crate::tape::{Component, Module, Tape, Tensor};

/// Form of ViT's blocks.
const BLOCKS: BlockForm = BlockForm {
    attention: "attention",
    out_proj: "o_proj",
    norms: ["layernorm_before", "layernorm_after"],
    order: BlockOrder::NormsBetween,
    query_first: true,
    splits_late: false,
    wide_softmax: true,
};

/// `ViTForImageClassification`.
pub struct Vit {
    embeddings: Embeddings,
    layers: Vec<Numbered<Block>>,
    layernorm: LayerNorm,
    classifier: Linear,
    grid: PatchGrid,
}

struct Embeddings {
    module: Module,
    cls_token: Tensor,
    projection_weight: Tensor,
    projection_bias: Tensor,
    position_embeddings: Tensor,
    dropout: f64,
}

impl Vit {
    pub fn new(b: &Builder, c: &VitConfig) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let blocks = BlockConfig {
            form: &BLOCKS,
            shape: c.shape,
            activation: c.activation,
            attention_dropout: c.attention_dropout,
            dropout: c.hidden_dropout,
            qkv_bias: c.qkv_bias,
        };
        let (embeddings, layers, layernorm) = t.component("vit", Component::VisionTower, || {
            let embeddings = t.scope("embeddings", || Embeddings::new(b, c));
            let layers = make_blocks(b, "layers", &blocks);
            (embeddings, layers, LayerNorm::new(b, "layernorm", hidden))
        });
        let classifier = t.component("", Component::Head, || {
            Linear::new(b, "classifier", hidden, c.labels, true)
        });
        Self {
            embeddings,
            layers,
            layernorm,
            classifier,
            grid: c.grid,
        }
    }

    /// Pixels [batch, channels, side, side] → [batch, positions, hidden].
    fn hidden(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let embedded = self.embeddings.call(t, pixels);
        let h = run_blocks(t, run, &self.layers, &None, embedded.clone(), |_| ());
        self.layernorm.call(t, &h)
    }
}

impl Forward for Vit {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        Batch::of_classes(t, run, &[run.setup.batch, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(pixels), Some(labels)) = (&batch.pixels, &batch.labels) else {
            unreachable!("a batch to classify has pixels and labels")
        };
        let h = t.component("vit", Component::VisionTower, || self.hidden(t, run, pixels));
        t.component("", Component::Head, || {
            let pooled = t.select(&h, 1);
            let logits = self.classifier.call(t, &pooled);
            let loss = t.scope("loss", || nn::classification_loss(t, &logits, labels));
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}

impl Embeddings {
    fn new(b: &Builder, c: &VitConfig) -> Self {
        let hidden = c.shape.hidden;
        let PatchGrid { patch, channels, .. } = c.grid;
        let cls_token = b.weight("cls_token", [1, 1, hidden]);
        let (projection_weight, projection_bias) = b.tape().scope("patch_embeddings.projection", || {
            let weight = b.weight("weight", [hidden, channels, patch, patch]);
            (weight, b.weight("bias", [hidden]))
        });
        Self {
            module: b.module(),
            cls_token,
            projection_weight,
            projection_bias,
            position_embeddings: b.weight("position_embeddings", [1, c.grid.patches() + 1, hidden]),
            dropout: c.hidden_dropout,
        }
    }

    fn call(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let pixels = t.to_dtype(pixels, self.projection_weight.dtype());
            let mut embedded = self.patches(t, &pixels);
            let cls = t.expand(&self.cls_token, [pixels.size(0), 1, self.cls_token.last()]);
            embedded = t.cat(&[&cls, &embedded], 1);
            embedded = t.add(&embedded, &self.position_embeddings);
            t.dropout(&embedded, self.dropout)
        })
    }

    /// [batch, channels, side, side] → [batch, patches, hidden].
    fn patches(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let grid = t.conv_patches(pixels, &self.projection_weight, Some(&self.projection_bias));
        let flat = t.view(&grid, [grid.size(0), grid.size(1), grid.size(2) * grid.size(3)]);
        t.transpose(&flat, 1, 2)
    }
}
