//! Idefics3 and SmolVLM (`transformers/models/{idefics3,smolvlm}/modeling_*.py`).

use super::config::Idefics3Config;
use super::smolvlm_merger;
use crate::dtype::DType;
use crate::model::config::PatchGrid;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::stack::Decoder;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::idefics_vision::{IdeficsVision, pixel_mask, real_patches, real_tiles};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `Idefics3ForConditionalGeneration` and `SmolVLMForConditionalGeneration`.
pub struct Idefics3 {
    vision_model: IdeficsVision,
    modality_projection: Linear,
    text_model: Decoder,
    lm_head: Option<Linear>,
    grid: PatchGrid,
    scale_factor: u64,
    smolvlm: bool,
}

impl Idefics3 {
    pub fn new(b: &Builder, c: &Idefics3Config) -> Self {
        let t = b.tape();
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            IdeficsVision::new(b, &c.vision)
        });
        let features = c.vision.shape.hidden * c.scale_factor * c.scale_factor;
        let modality_projection = t.component("model.connector", Component::Connector, || {
            Linear::new(b, "modality_projection.proj", features, c.text.hidden, false)
        });
        let text_model = t.component("model.text_model", Component::LanguageModel, || {
            Decoder::new(b, &c.text)
        });
        let lm_head = text_model.head(b, &c.text);
        Self {
            vision_model,
            modality_projection,
            text_model,
            lm_head,
            grid: c.vision.grid,
            scale_factor: c.scale_factor,
            smolvlm: c.smolvlm,
        }
    }

    /// `get_image_features`: pixels [batch, tiles, channels, side, side] → [all tiles, tokens, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor, is_masked: bool) -> Tensor {
        let (last, projected) = t.component("model.vision_model", Component::VisionTower, || {
            let (pixels, _real) = real_tiles(t, &run.pixels_in_type_of_weights(t, pixels), run.images(), self.smolvlm);
            let mask = pixel_mask(t, &pixels, is_masked);
            let patches = real_patches(t, &mask, self.grid);
            let last = self.vision_model.forward(t, run, &pixels, &patches);
            let projected = t.component("connector", Component::Connector, || self.connect(t, &last));
            (last, projected)
        });
        drop(last);
        projected
    }

    /// Runs the pixel shuffle and the projection.
    fn connect(&self, t: &Tape, x: &Tensor) -> Tensor {
        let (n, side) = (self.scale_factor, self.grid.side());
        let [tiles, hidden] = [x.size(0), x.last()];
        let mut h = t.view(x, [tiles, side, side, hidden]);
        h = t.view(&h, [tiles, side, side / n, hidden * n]);
        h = t.permute(&h, &[0, 2, 1, 3]);
        h = t.reshape(&h, [tiles, side / n, side / n, hidden * n * n]);
        h = t.permute(&h, &[0, 2, 1, 3]);
        h = t.reshape(&h, [tiles, side * side / (n * n), hidden * n * n]);
        self.modality_projection.call(t, &h)
    }

    /// Writes image features over the image tokens' embeddings.
    fn merge(&self, t: &Tape, ids: &Tensor, embeds: &Tensor, features: &Tensor) -> Tensor {
        if self.smolvlm {
            return smolvlm_merger::merge(t, ids, embeds, features);
        }
        let mask = t.unsqueeze(&t.compute(ids, DType::Bool, "image token mask"), 2);
        let features = t.to_dtype(features, embeds.dtype());
        t.masked_scatter(embeds, &mask, &features)
    }
}

impl Forward for Idefics3 {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.text_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { image, channels, .. } = self.grid;
        let pixels = [run.setup.batch, run.setup.images, channels, image, image];
        let mask = [run.setup.batch, run.setup.images, image, image];
        Batch::of_text(t, run)
            .with_pixels(t, run, &pixels)
            .with_pixel_mask(t, run, &mask)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let mut embeds = t.component("model.text_model", Component::LanguageModel, || {
            self.text_model.embed(t, run, ids)
        });
        let features = self.image_features(t, run, pixels, batch.pixel_mask.is_some());
        embeds = t.component("model", Component::Connector, || self.merge(t, ids, &embeds, &features));
        let h = t.component("model.text_model", Component::LanguageModel, || {
            self.text_model.forward(t, run, embeds)
        });
        let mut output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        output.held.push(features);
        output
    }
}
