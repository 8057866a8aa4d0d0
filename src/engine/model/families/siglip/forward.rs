//! SigLIP with its sigmoid loss (`transformers/models/siglip/modeling_siglip.py`).

use super::config::{SiglipConfig, SiglipTextConfig};
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::encoder::{Block, BlockConfig, make_blocks, run_blocks};
use crate::model::parts::siglip_vision::{BLOCKS, SiglipVision};
use crate::nn::{Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::tape::{Component, Tape, Tensor};

/// `SiglipModel`.
pub struct Siglip {
    text_model: TextModel,
    vision_model: SiglipVision,
    logit_scale: Tensor,
    logit_bias: Tensor,
    grid: PatchGrid,
    positions: u64,
}

/// `SiglipTextModel`.
struct TextModel {
    token_embedding: Embedding,
    position_embedding: Embedding,
    position_ids: Tensor,
    layers: Vec<Numbered<Block>>,
    final_layer_norm: LayerNorm,
    head: Linear,
}

impl Siglip {
    pub fn new(b: &Builder, c: &SiglipConfig) -> Self {
        let t = b.tape();
        let text_model = t.component("text_model", Component::LanguageModel, || TextModel::new(b, &c.text));
        let vision_model = t.component("vision_model", Component::VisionTower, || {
            SiglipVision::new(b, &c.vision)
        });
        let (logit_scale, logit_bias) = t.component("", Component::Head, || {
            (b.weight("logit_scale", [1]), b.weight("logit_bias", [1]))
        });
        Self {
            text_model,
            vision_model,
            logit_scale,
            logit_bias,
            grid: c.vision.grid,
            positions: c.text.positions,
        }
    }

    /// Similarities of texts and images, [texts, images].
    fn logits(&self, t: &Tape, text: &Tensor, images: &Tensor) -> Tensor {
        let similarity = t.matmul(text, &t.transpose(images, 0, 1));
        let scaled = {
            let scale = t.exp(&self.logit_scale);
            t.mul(&similarity, &scale)
        };
        let logits = t.add(&scaled, &self.logit_bias);
        drop((scaled, similarity));
        logits
    }
}

impl Forward for Siglip {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let (batch, PatchGrid { image, channels, .. }) = (run.setup.batch, self.grid);
        Batch::of_padded_pairs(t, [batch, self.positions]).with_pixels(t, run, &[batch, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch of pairs has ids and pixels")
        };
        let (image_last, image_pooled) = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        let Some(image_pooled) = image_pooled else {
            unreachable!("`has_forward` asks for a pooling head")
        };
        let (text_last, text_pooled) = t.component("text_model", Component::LanguageModel, || {
            self.text_model.forward(t, run, ids)
        });
        t.component("", Component::Head, || {
            let image_embeds = normalized(t, &image_pooled);
            let text_embeds = normalized(t, &text_pooled);
            let logits = self.logits(t, &text_embeds, &image_embeds);
            let loss = t.scope("loss", || sigmoid_loss(t, &logits));
            let towers = [image_last, image_pooled, text_last, text_pooled];
            let held = towers.into_iter().chain([logits, image_embeds, text_embeds]);
            Output {
                loss,
                held: held.collect(),
            }
        })
    }
}

/// `x / x.norm(p=2, dim=-1, keepdim=True)`.
fn normalized(t: &Tape, x: &Tensor) -> Tensor {
    let norm = t.norm_last(x);
    t.div(x, &norm)
}

/// `-sum(logsigmoid((2 * eye - 1) * logits), dim=-1)`, averaged: every pair is classified as matching or not.
fn sigmoid_loss(t: &Tape, logits: &Tensor) -> Tensor {
    let n = logits.size(0);
    let eye = t.empty([n, n], DType::F32, "eye");
    let signs = {
        let ones = t.compute(logits, logits.dtype(), "ones");
        let minus = t.compute(&ones, logits.dtype(), "-ones");
        drop(ones);
        let twice = t.compute(&eye, DType::F32, "2 × eye");
        let signs = t.add(&minus, &twice);
        drop((twice, minus));
        signs
    };
    let log_likelihood = {
        let signed = t.mul(&signs, logits);
        t.activation("LogSigmoidBackward0", &signed, "logsigmoid")
    };
    let negative = {
        let sum = t.sum_last(&log_likelihood);
        t.neg(&t.squeeze(&sum, 1))
    };
    t.mean(&negative, 0)
}

impl TextModel {
    fn new(b: &Builder, c: &SiglipTextConfig) -> Self {
        let hidden = c.shape.hidden;
        let (token_embedding, position_embedding, position_ids) = b.tape().scope("embeddings", || {
            (
                Embedding::new(b, "token_embedding", c.vocab, hidden),
                Embedding::new(b, "position_embedding", c.positions, hidden),
                b.buffer("position_ids", [1, c.positions], DType::I64),
            )
        });
        let blocks = BlockConfig {
            form: &BLOCKS,
            shape: c.shape,
            activation: c.activation,
            attention_dropout: c.attention_dropout,
            dropout: 0.0,
            qkv_bias: true,
        };
        Self {
            token_embedding,
            position_embedding,
            position_ids,
            layers: make_blocks(b, "encoder.layers", &blocks),
            final_layer_norm: LayerNorm::new(b, "final_layer_norm", hidden),
            head: Linear::new(b, "head", hidden, c.projection, true),
        }
    }

    /// Ids [batch, positions] → last hidden states, and the head's output for the last position.
    fn forward(&self, t: &Tape, run: &Run, ids: &Tensor) -> (Tensor, Tensor) {
        let h = t.scope("embeddings", || self.embed(t, run, ids));
        let mut last = run_blocks(t, run, &self.layers, &None, h.clone(), |_| ());
        last = self.final_layer_norm.call(t, &last);
        let pooled = t.select(&last, 1);
        let pooled = self.head.call(t, &pooled);
        (last, pooled)
    }

    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let tokens = self
            .token_embedding
            .call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let positions = self.position_embedding.call(t, &self.position_ids);
        t.add(&tokens, &positions)
    }
}
