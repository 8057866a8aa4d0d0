//! BLIP-2 (`transformers/models/blip_2/modeling_blip_2.py`).

use super::config::Blip2Config;
use super::qformer::QFormer;
use super::vision::{Blip2Vision, Blip2VisionOutput};
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::families::opt::Opt;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Blip2ForConditionalGeneration`.
pub struct Blip2 {
    vision_model: Blip2Vision,
    query_tokens: Tensor,
    qformer: QFormer,
    language_projection: Linear,
    language_model: Opt,
    grid: PatchGrid,
}

/// Image features, and the intermediate results that the output object holds.
struct ImageFeatures {
    /// [images, queries, hidden of the language model].
    features: Tensor,
    vision: Blip2VisionOutput,
    queries: Tensor,
}

impl Blip2 {
    pub fn new(b: &Builder, c: &Blip2Config) -> Self {
        let t = b.tape();
        let vision_model = t.component("vision_model", Component::VisionTower, || {
            Blip2Vision::new(b, &c.vision)
        });
        // Training only the connector selects modules by name; the queries belong to none of them.
        let query_tokens = t.component("", Component::LanguageModel, || {
            b.weight("query_tokens", [1, c.queries, c.qformer.shape.hidden])
        });
        let qformer = t.component("qformer", Component::Connector, || QFormer::new(b, &c.qformer));
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
        }
    }

    /// `get_image_features`.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> ImageFeatures {
        let vision = t.component("vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        t.component("", Component::Connector, || {
            let image = &vision.last;
            let mask = nn::ids(t, &[image.size(0), image.size(1)], "image attention mask");
            let [queries, hidden] = [self.query_tokens.size(1), self.query_tokens.size(2)];
            let tokens = t.expand(&self.query_tokens, [image.size(0), queries, hidden]);
            let queries = self.qformer.call(t, run, &tokens, image, Some(&mask));
            let query_output = t.to_dtype(&queries, image.dtype());
            let features = self.language_projection.call(t, &query_output);
            drop((query_output, tokens, mask));
            ImageFeatures {
                features,
                vision,
                queries,
            }
        })
    }
}

impl Forward for Blip2 {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        Batch::of_text(t, run).with_pixels(t, run, &[run.setup.batch, channels, image, image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let images = self.image_features(t, run, pixels);
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
            let whole = t.narrow(&logits, 1, labels.size(1));
            t.scope("loss", || nn::causal_lm_loss(t, &whole, labels))
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

    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        let h = t.component("language_model", Component::LanguageModel, || {
            let embeds = self.language_model.embed(t, run, ids);
            self.language_model.hidden(t, run, embeds, None)
        });
        Some(t.component("language_model", Component::Head, || self.language_model.logits(t, &h)))
    }
}
