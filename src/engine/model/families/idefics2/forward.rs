//! Idefics2 (`transformers/models/idefics2/modeling_idefics2.py`).

use super::config::Idefics2Config;
use super::perceiver::Perceiver;
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::idefics_vision::{IdeficsVision, pixel_mask, real_patches, real_tiles};
use crate::model::parts::image_tokens::look_up;
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Idefics2ForConditionalGeneration`.
pub struct Idefics2<T> {
    vision_model: IdeficsVision,
    modality_projection: Mlp,
    perceiver: Perceiver,
    text_model: T,
    lm_head: Option<Linear>,
    grid: PatchGrid,
    /// Image token, and the rows of the embedding.
    looked_up: [u64; 2],
}

impl<T: Text> Idefics2<T> {
    pub fn new(b: &Builder, c: &Idefics2Config) -> Self {
        let t = b.tape();
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            IdeficsVision::new(b, &c.vision)
        });
        let (modality_projection, perceiver) = t.component("model.connector", Component::Connector, || {
            let widths = [c.vision.shape.hidden, c.text.intermediate];
            let projection = t.scope("modality_projection", || {
                Mlp::of_tower(b, widths, c.text.hidden, false, c.text.activation)
            });
            let perceiver = t.scope("perceiver_resampler", || Perceiver::new(b, &c.perceiver, c.text.hidden));
            (projection, perceiver)
        });
        let text_model = t.component("model.text_model", Component::LanguageModel, || T::new(b, &c.text));
        let lm_head = text_model.head(b, &c.text);
        Self {
            vision_model,
            modality_projection,
            perceiver,
            text_model,
            lm_head,
            grid: c.vision.grid,
            looked_up: [c.image_token, c.text.vocab],
        }
    }

    /// `get_image_features`: pixels [batch, images, channels, side, side] → [all latents, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, is_masked: bool) -> Tensor {
        let (pixels, _real) = real_tiles(t, &run.pixels_in_type_of_weights(t, pixels), run.images(), false);
        let mask = pixel_mask(t, &pixels, is_masked);
        let patches = real_patches(t, &mask, self.grid);
        let last = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, &pixels, &patches)
        });
        let features = t.component("model.connector", Component::Connector, || {
            let projected = self.modality_projection.call(t, last.clone());
            self.perceiver.call(t, run.attn, &projected)
        });
        drop((pixels, mask, patches, last));
        t.view(&features, [features.size(0) * features.size(1), features.last()])
    }

    /// `inputs_merger`: writes image features over the image tokens' embeddings.
    fn merge(&self, t: &Tape, ids: &Tensor, embeds: &Tensor, features: &Tensor) -> Tensor {
        let mask = t.unsqueeze(&t.compute(ids, DType::Bool, "image token mask"), 2);
        let features = t.to_dtype(features, embeds.dtype());
        t.masked_scatter(embeds, &mask, &features)
    }
}

impl<T: Text> Forward for Idefics2<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.text_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let pixels = [run.setup.batch, run.setup.images, channels, image, image];
        let mask = [run.setup.batch, run.setup.images, image, image];
        let batch = Batch::of_text(t, run);
        match run.setup.images {
            0 => batch,
            _ => batch.with_pixels(t, run, &pixels).with_pixel_mask(t, run, &mask),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a batch has ids")
        };
        let mut embeds = t.component("model.text_model", Component::LanguageModel, || {
            self.text_model.embed(t, run, ids)
        });
        let features = batch.pixels.as_ref().map(|pixels| {
            let [token, rows] = self.looked_up;
            look_up(t, token, rows);
            self.image_features(t, run, pixels, batch.pixel_mask.is_some())
        });
        if let Some(features) = &features {
            embeds = t.component("model", Component::Connector, || self.merge(t, ids, &embeds, features));
        }
        let h = t.component("model.text_model", Component::LanguageModel, || {
            self.text_model.forward(t, run, embeds)
        });
        let mut output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        output.held.extend(features);
        output
    }
}
