//! Ovis2 (`transformers/models/ovis2/modeling_ovis2.py`).

use super::config::Ovis2Config;
use super::vision::Ovis2Vision;
use crate::dtype::DType;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::placeholder_mask;
use crate::nn::{self, Builder, Embedding, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Ovis2ForConditionalGeneration`.
pub struct Ovis2<T> {
    vision_tower: Ovis2Vision,
    language_model: T,
    visual_embeddings_table: Embedding,
    lm_head: Option<Linear>,
    config: Ovis2Config,
}

/// Result of `get_image_features`.
struct ImageFeatures {
    /// [images, tokens, hidden].
    features: Tensor,
    /// Embeddings of the indicators, [indicators, hidden].
    indicators: Tensor,
    /// The tower's features.
    _last: Tensor,
}

impl<T: Text> Ovis2<T> {
    pub fn new(b: &Builder, c: &Ovis2Config) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            Ovis2Vision::new(b, &c.vision)
        });
        let language_model = t.component("model.language_model", Component::LanguageModel, || T::new(b, &c.text));
        let visual_embeddings_table = t.component("model", Component::Connector, || {
            Embedding::new(b, "visual_embeddings_table", c.vision.words, c.text.hidden)
        });
        let lm_head = language_model.head(b, &c.text);
        Self {
            vision_tower,
            language_model,
            visual_embeddings_table,
            lm_head,
            config: c.clone(),
        }
    }

    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> ImageFeatures {
        let (words, last) = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower.forward(t, run, pixels)
        });
        t.component("model", Component::Connector, || {
            let count = self.config.vision.indicators;
            let padding = t.empty([words.size(0), words.size(1), count], words.dtype(), "zeros");
            let padded = t.cat(&[&words, &padding], 2);
            let features = t.scope("visual_embeddings_table", || {
                t.matmul(&padded, self.visual_embeddings_table.weight())
            });
            drop(padded);
            let places = nn::ids(t, &[count], "indicators");
            drop(words);
            let indicators = self.visual_embeddings_table.call(t, &places);
            drop((places, padding));
            ImageFeatures {
                features,
                indicators,
                _last: last,
            }
        })
    }

    /// Writes the features of images, then those of each indicator that the text has.
    fn merge(&self, t: &Tape, ids: &Tensor, mut embeds: Tensor, images: &ImageFeatures) -> (Tensor, [Tensor; 3]) {
        let mask = placeholder_mask(t, ids);
        let features = t.to_dtype(&images.features, embeds.dtype());
        embeds = t.place_features(&embeds, &mask, &features);
        let marked = images.features.size(0);
        // In the order of their ids: start, grid, column, row, end. Images that are not cut have neither columns nor rows.
        let mut of_indicator = None;
        for is_there in [true, true, false, false, true] {
            let places = t.compute(ids, DType::Bool, "indicator mask");
            of_indicator = Some(places.clone());
            drop(t.empty([], DType::Bool, "any"));
            if is_there {
                let one = t.to_dtype(&t.select(&images.indicators, 0), embeds.dtype());
                embeds = t.index_put_one(embeds, &places, &one, marked);
            }
        }
        let last = of_indicator.unwrap_or_else(|| mask.clone());
        (embeds, [mask, features, last])
    }
}

impl<T: Text> Forward for Ovis2<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let grid = self.config.vision.grid;
        let images = run.images();
        Batch::of_text(t, run).with_pixels(t, run, &[images, grid.channels, grid.image, grid.image])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let images = self.image_features(t, run, pixels);
        let (embeds, locals) = t.component("model", Component::Connector, || self.merge(t, ids, embeds, &images));
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds)
        });
        let shown = locals[1].clone();
        drop((locals, images));
        let mut output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        output.held.push(shown);
        output
    }
}
