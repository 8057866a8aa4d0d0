//! CLIP with its contrastive loss (`transformers/models/clip/modeling_clip.py`).

use std::rc::Rc;

use super::config::{ClipConfig, ClipTextConfig};
use crate::dtype::DType;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::clip_vision::{BLOCKS, ClipVision};
use crate::model::parts::encoder::{Block, BlockConfig, make_blocks, run_blocks};
use crate::nn::{self, Builder, Embedding, LayerNorm, Linear, Numbered};
use crate::tape::{Component, Tape, Tensor};

/// `CLIPModel`.
pub struct Clip {
    text_model: TextModel,
    vision_model: ClipVision,
    visual_projection: Linear,
    text_projection: Linear,
    logit_scale: Tensor,
    /// Channels and side of an image, positions of a text.
    image: [u64; 2],
    positions: u64,
}

/// `CLIPTextModel`.
struct TextModel {
    token_embedding: Embedding,
    position_embedding: Embedding,
    position_ids: Tensor,
    layers: Vec<Numbered<Block>>,
    final_layer_norm: LayerNorm,
    ends_at_highest_id: bool,
}

/// A tower's last hidden states, and the projection of the pooled one.
struct Features {
    last: Tensor,
    projected: Tensor,
}

impl Clip {
    pub fn new(b: &Builder, c: &ClipConfig) -> Self {
        let t = b.tape();
        let text_model = t.component("text_model", Component::LanguageModel, || TextModel::new(b, &c.text));
        let vision_model = t.component("vision_model", Component::VisionTower, || ClipVision::new(b, &c.vision));
        let (visual_projection, text_projection, logit_scale) = t.component("", Component::Head, || {
            let project = |name, width| Linear::new(b, name, width, c.projection, false);
            let visual = project("visual_projection", c.vision.hidden);
            let text = project("text_projection", c.text.shape.hidden);
            (visual, text, b.weight("logit_scale", []))
        });
        Self {
            text_model,
            vision_model,
            visual_projection,
            text_projection,
            logit_scale,
            image: [c.vision.channels, c.vision.image],
            positions: c.text.positions,
        }
    }

    /// `get_image_features`: pixels → [batch, projection].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Features {
        let output = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels, |_| ())
        });
        let projected = t.component("visual_projection", Component::Head, || {
            self.visual_projection.forward(t, &output.pooled)
        });
        Features {
            last: output.last,
            projected,
        }
    }

    /// `get_text_features`: ids → [batch, projection].
    fn text_features(&self, t: &Tape, run: &Run, ids: &Tensor) -> Features {
        let (last, pooled) = t.component("text_model", Component::LanguageModel, || {
            self.text_model.forward(t, run, ids)
        });
        let projected = t.component("text_projection", Component::Head, || {
            self.text_projection.forward(t, &pooled)
        });
        Features { last, projected }
    }
}

impl Forward for Clip {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let (batch, [channels, side]) = (run.setup.batch, self.image);
        Batch::of_pairs(t, [batch, self.positions]).with_pixels(t, run, &[batch, channels, side, side])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch of pairs has ids and pixels")
        };
        let images = self.image_features(t, run, pixels);
        let texts = self.text_features(t, run, ids);
        t.component("", Component::Head, || {
            let image_embeds = normalized(t, &images.projected);
            let text_embeds = normalized(t, &texts.projected);
            let logits = {
                let similarity = t.matmul(&text_embeds, &t.transpose(&image_embeds, 0, 1));
                let scale = t.exp(&self.logit_scale);
                t.mul(&similarity, &scale)
            };
            let loss = t.scope("loss", || contrastive_loss(t, &logits));
            let held = [images, texts].into_iter().flat_map(|f| [f.last, f.projected]);
            Output {
                loss,
                held: held.chain([logits, image_embeds, text_embeds]).collect(),
            }
        })
    }
}

/// `x / _get_vector_norm(x)`.
fn normalized(t: &Tape, x: &Tensor) -> Tensor {
    let norm = {
        let squares = t.pow(x);
        let sum = t.sum_last(&squares);
        t.pow(&sum)
    };
    t.div(x, &norm)
}

/// `image_text_contrastive_loss`: matches each text with its image, and each image with its text.
fn contrastive_loss(t: &Tape, similarity: &Tensor) -> Tensor {
    let one_way = |logits: &Tensor| {
        let target = nn::ids(t, &[logits.size(0)], "arange");
        t.cross_entropy(logits, &target)
    };
    let captions = one_way(similarity);
    let images = one_way(&t.transpose(similarity, 0, 1));
    let sum = t.add(&captions, &images);
    t.scale(&sum)
}

impl TextModel {
    fn new(b: &Builder, c: &ClipTextConfig) -> Self {
        let t = b.tape();
        let hidden = c.shape.hidden;
        let (token_embedding, position_embedding, position_ids) = t.scope("embeddings", || {
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
            ends_at_highest_id: c.ends_at_highest_id,
        }
    }

    /// Ids [batch, positions] → last hidden states and that of the end-of-text token.
    fn forward(&self, t: &Tape, run: &Run, ids: &Tensor) -> (Tensor, Tensor) {
        let h = t.scope("embeddings", || self.embed(t, run, ids));
        let mask = nn::causal_mask(t, run.attn, &h).map(Rc::new);
        let mut last = run_blocks(t, run, &self.layers, &mask, h.clone(), |_| ());
        last = self.final_layer_norm.call(t, &last);
        let samples = nn::ids(t, &[ids.size(0)], "arange");
        let ends = self.ends(t, ids);
        let pooled = t.index(&last, &[samples, ends]);
        (last, pooled)
    }

    /// Position of each text's end, [batch].
    fn ends(&self, t: &Tape, ids: &Tensor) -> Tensor {
        let mut marks = t.compute(ids, DType::I32, "ids as int32");
        if !self.ends_at_highest_id {
            marks = t.compute(&marks, DType::Bool, "end of text");
            marks = t.compute(&marks, DType::I32, "end of text as int32");
        }
        nn::ids(t, &[marks.size(0)], "argmax")
    }

    fn embed(&self, t: &Tape, run: &Run, ids: &Tensor) -> Tensor {
        let tokens = self
            .token_embedding
            .call_hooked(t, ids, |embeds| run.embedded(t, embeds));
        let positions = self.position_embedding.call(t, &self.position_ids);
        t.add(&tokens, &positions)
    }
}
