//! KOSMOS-2 and KOSMOS-2.5 (`transformers/models/{kosmos2,kosmos2_5}/modeling_*.py`).

use super::config::{Kosmos2Config, VisionConfig};
use super::patches::{PLACES, PatchesVision};
use super::text::{Decoder, KosmosAttention};
use crate::model::decoder::head::logits_and_loss;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::clip_vision::{BLOCKS, ClipVision};
use crate::model::parts::encoder::BlockForm;
use crate::nn::{self, Builder, Linear};
use crate::setup::Attention;
use crate::tape::{Component, Kind, Tape, Tensor};

/// Form of the tower's blocks: CLIP's, with a softmax in the type of the scores.
const VISION_BLOCKS: BlockForm = BlockForm {
    wide_softmax: false,
    ..BLOCKS
};

/// `Kosmos2ForConditionalGeneration` and `Kosmos2_5ForConditionalGeneration`.
pub struct Kosmos2 {
    text_model: Decoder,
    lm_head: Linear,
    vision_model: Vision,
    image_to_text_projection: Projection,
    /// Shape of the input of an image.
    image: Vec<u64>,
}

/// The vision tower.
enum Vision {
    Clip(Box<ClipVision>),
    Patches(Box<PatchesVision>),
}

/// `Kosmos2ImageToTextProjection`.
struct Projection {
    latent_query: Tensor,
    dense: Linear,
    x_attn: KosmosAttention,
}

impl Kosmos2 {
    pub fn new(b: &Builder, c: &Kosmos2Config) -> Self {
        let t = b.tape();
        let text_model = t.component("text_model.model", Component::LanguageModel, || {
            Decoder::new(b, &c.text)
        });
        let lm_head = t.component("text_model", Component::Head, || match c.text.tie_word_embeddings {
            true => Linear::tied(b, "lm_head", text_model.table()),
            false => Linear::new(b, "lm_head", c.text.hidden, c.text.vocab, false),
        });
        let (vision_model, image) = match &c.vision {
            VisionConfig::Clip(vision) => {
                let tower = t.component("vision_model.model", Component::VisionTower, || {
                    ClipVision::with_blocks(b, vision, &VISION_BLOCKS)
                });
                let image = vec![vision.channels, vision.image, vision.image];
                (Vision::Clip(Box::new(tower)), image)
            }
            VisionConfig::Patches(vision) => {
                let tower = t.component("vision_model", Component::VisionTower, || PatchesVision::new(b, vision));
                (
                    Vision::Patches(Box::new(tower)),
                    vec![vision.patches, PLACES + vision.patch],
                )
            }
        };
        let width = match &c.vision {
            VisionConfig::Clip(vision) => vision.hidden,
            VisionConfig::Patches(vision) => vision.hidden,
        };
        let image_to_text_projection = t.component("image_to_text_projection", Component::Connector, || {
            Projection::new(b, c, width)
        });
        Self {
            text_model,
            lm_head,
            vision_model,
            image_to_text_projection,
            image,
        }
    }
}

impl Projection {
    fn new(b: &Builder, c: &Kosmos2Config, width: u64) -> Self {
        let hidden = c.text.hidden;
        let dense = Linear::new(b, "dense", width, hidden, true);
        Self {
            dense,
            latent_query: b.weight("latent_query", [c.latents, hidden]),
            x_attn: b.tape().scope("x_attn", || KosmosAttention::new(b, &c.text)),
        }
    }

    /// Features [images, positions, width] → [images, latents, hidden], and the attention weights.
    fn forward(&self, t: &Tape, attn: Attention, features: &Tensor) -> (Tensor, Option<Tensor>) {
        let h = self.dense.call(t, features);
        let [latents, hidden] = [self.latent_query.size(0), self.latent_query.size(1)];
        let queries = t.expand(&t.unsqueeze(&self.latent_query, 0), [h.size(0), latents, hidden]);
        let source = t.cat(&[&h, &queries], 1);
        let out = self.x_attn.call(t, attn, [&queries, &source], None);
        drop((source, h));
        out
    }
}

impl Vision {
    /// Input of the images → the tensors that the tower's output holds, and features [images, positions, width].
    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Vec<Tensor>, Tensor) {
        match self {
            Self::Clip(tower) => t.component("vision_model.model", Component::VisionTower, || {
                let output = tower.forward(t, run, pixels, |_| ());
                let normed = tower.normed(t, &output.last);
                (vec![output.last, output.pooled], normed)
            }),
            Self::Patches(tower) => t.component("vision_model", Component::VisionTower, || {
                let last = tower.forward(t, run, pixels);
                (vec![last.clone()], last)
            }),
        }
    }
}

/// `torch.nn.functional.normalize(x, dim=-1)`.
fn normalize(t: &Tape, x: &Tensor) -> Tensor {
    let norm = t.clamp_min(&t.norm_last(x));
    t.div(x, &t.expand(&norm, *x.shape()))
}

impl Forward for Kosmos2 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let samples = run.setup.batch;
        let mut batch = Batch::of_text(t, run);
        let shape = [samples, run.setup.seq];
        let mask = t.as_kind(Kind::Input, || nn::ids(t, &shape, "image_embeds_position_mask"));
        batch.others.push(mask);
        batch.with_pixels(t, run, &[&[samples], &self.image[..]].concat())
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let (vision, mut features) = self.vision_model.forward(t, run, pixels);
        features = normalize(t, &features);
        let (embeds, weights) = t.component("image_to_text_projection", Component::Connector, || {
            self.image_to_text_projection.forward(t, run.attn, &features)
        });
        features = embeds;
        let h = t.component("text_model.model", Component::LanguageModel, || {
            self.text_model.forward(t, run, ids, &features)
        });
        let mut output = logits_and_loss(t, &self.lm_head, h, batch);
        output.held.extend(vision);
        output.held.push(features);
        output.held.extend(weights);
        output
    }
}
