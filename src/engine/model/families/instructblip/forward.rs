//! InstructBLIP (`transformers/models/instructblip/modeling_instructblip.py`) and InstructBLIP-Video
//! (`transformers/models/instructblipvideo/modeling_instructblipvideo.py`).

use super::config::InstructBlipConfig;
use super::qformer::{Given, QFormer};
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::families::blip2::{Blip2Vision, Blip2VisionOutput};
use crate::model::families::opt::Opt;
use crate::model::forward::{Batch, Forward, Output, Run, cast_pixels};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Kind, Tape, Tensor};

/// `InstructBlipForConditionalGeneration` and `InstructBlipVideoForConditionalGeneration`.
pub struct InstructBlip {
    vision_model: Blip2Vision,
    query_tokens: Tensor,
    qformer: QFormer,
    language_projection: Linear,
    language_model: Opt,
    grid: PatchGrid,
    frames: Option<u64>,
}

/// Image features, and the intermediate results that the output object holds.
struct ImageFeatures {
    /// [samples, image tokens, hidden of the language model].
    features: Tensor,
    vision: Blip2VisionOutput,
    queries: Tensor,
}

impl InstructBlip {
    pub fn new(b: &Builder, c: &InstructBlipConfig) -> Self {
        let t = b.tape();
        let vision_model = t.component("vision_model", Component::VisionTower, || {
            Blip2Vision::new(b, &c.vision)
        });
        // Training only the connector selects modules by name; the queries belong to none of them.
        let query_tokens = t.component("", Component::LanguageModel, || {
            b.weight("query_tokens", [1, c.queries, c.qformer.shape.hidden])
        });
        let qformer = t.component("qformer", Component::Connector, || QFormer::new(b, c));
        let language_projection = t.component("", Component::Connector, || {
            let (input, output) = (c.qformer.shape.hidden, c.text.hidden);
            Linear::new(b, "language_projection", input, output, true)
        });
        Self {
            vision_model,
            query_tokens,
            qformer,
            language_projection,
            language_model: Opt::new(b, &c.text, "language_model"),
            grid: c.vision.grid,
            frames: c.frames,
        }
    }

    /// `get_image_features`, `get_video_features`: of pixels, and the text's tokens and mask for the querying transformer.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, [ids, mask]: [&Tensor; 2]) -> ImageFeatures {
        let samples = pixels.size(0);
        let mut pixels = pixels.clone();
        if let Some(frames) = self.frames {
            let PatchGrid { image, .. } = self.grid;
            pixels = t.view(&pixels, [samples * frames, pixels.size(2), image, image]);
        }
        let vision = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, &pixels)
        });
        t.component("", Component::Connector, || {
            let image = &vision.last;
            let images = image.size(0);
            let [queries, hidden] = [self.query_tokens.size(1), self.query_tokens.size(2)];
            let image_mask = nn::ids(t, &[images, image.size(1)], "image attention mask");
            let tokens = t.expand(&self.query_tokens, [images, queries, hidden]);
            let query_mask = nn::ids(t, &[images, queries], "query attention mask");
            let of_each = |x: &Tensor| match self.frames {
                Some(frames) => t.repeat_each(x, frames, 0),
                None => x.clone(),
            };
            let (ids, text_mask) = (of_each(ids), of_each(mask));
            let mask = nn::ids(t, &[images, queries + ids.size(1)], "query and text mask");
            drop(text_mask);
            let given = Given {
                ids: &ids,
                mask: &mask,
                image,
                image_mask: &image_mask,
            };
            let read = self.qformer.call(t, run, &tokens, &given);
            let query_output = t.slice(&read, 1, queries);
            let mut features = self.language_projection.call(t, &query_output);
            features = t.reshape(&features, [samples, images / samples * queries, features.size(2)]);
            drop((query_output, query_mask, tokens));
            ImageFeatures {
                features,
                vision,
                queries: read,
            }
        })
    }
}

impl Forward for InstructBlip {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let samples = run.setup.batch;
        let shape = match self.frames {
            Some(frames) => vec![samples, frames, channels, image, image],
            None => vec![samples, channels, image, image],
        };
        // The text for the querying transformer is what the language model reads beside the image.
        let image_tokens = self.frames.unwrap_or(1) * self.query_tokens.size(1);
        let length = run.setup.seq.saturating_sub(image_tokens).max(1);
        let mut batch = Batch::of_text(t, run);
        let pixels = || t.empty(&shape[..], run.pixels_arrive_in(), "pixel_values");
        batch.pixels = Some(t.as_kind(Kind::Input, pixels));
        let texts = ["qformer_input_ids", "qformer_attention_mask"];
        let made = t.as_kind(Kind::Input, || texts.map(|name| nn::ids(t, &[samples, length], name)));
        batch.qformer = Some(made);
        batch.pixels = batch
            .pixels
            .map(|pixels| t.as_kind(Kind::Input, || cast_pixels(t, run, pixels)));
        batch
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels), Some([text, text_mask])) = (&batch.ids, &batch.pixels, &batch.qformer) else {
            unreachable!("a batch has ids, pixels and the text for the querying transformer")
        };
        let images = self.image_features(t, run, pixels, [text, text_mask]);
        let (features, logits) = t.component("language_model", Component::LanguageModel, || {
            let mut embeds = self.language_model.embed(t, run, ids);
            let features = t.to_dtype(&images.features, embeds.dtype());
            let mask = t.unsqueeze(&t.compute(ids, DType::Bool, "image token mask"), 2);
            embeds = t.masked_scatter(&embeds, &mask, &features);
            let h = self.language_model.hidden(t, run, embeds.clone(), None);
            let h = if batch.labels.is_some() { h } else { t.slice(&h, 1, 1) };
            let logits = t.component("", Component::Head, || self.language_model.logits(t, &h));
            drop(h);
            ((embeds, features, mask), logits)
        });
        let Some(labels) = &batch.labels else {
            return Output {
                loss: logits,
                held: Vec::new(),
            };
        };
        let loss = t.component("", Component::Head, || {
            t.scope("loss", || nn::causal_lm_loss(t, &logits, labels))
        });
        drop(features);
        Output {
            loss,
            // The logits stand in the language model's own outputs too.
            held: vec![
                logits.clone(),
                logits,
                images.vision.last,
                images.vision.pooled,
                images.queries,
            ],
        }
    }
}
