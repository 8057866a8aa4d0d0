//! DeepSeek-VL (`transformers/models/deepseek_vl/modeling_deepseek_vl.py`).

use super::config::DeepseekVlConfig;
use crate::model::config::{Activation, PatchGrid};
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::{Features, ImageText};
use crate::model::parts::siglip_vision::SiglipVision;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `DeepseekVLForConditionalGeneration`.
pub struct DeepseekVl<T> {
    vision_model: SiglipVision,
    aligner: [Linear; 2],
    text: ImageText<T>,
    grid: PatchGrid,
}

impl<T: Text> DeepseekVl<T> {
    pub fn new(b: &Builder, c: &DeepseekVlConfig) -> Self {
        let t = b.tape();
        let vision_model = t.component("model.vision_model", Component::VisionTower, || {
            SiglipVision::new(b, &c.vision)
        });
        let (hidden, out) = (c.vision.shape.hidden, c.text.hidden);
        let aligner = t.component("model.aligner", Component::Connector, || {
            [
                Linear::new(b, "linear1", hidden, out, true),
                Linear::new(b, "linear2", out, out, true),
            ]
        });
        Self {
            vision_model,
            aligner,
            text: ImageText::new(b, &c.text).looking_up(c.image_token, c.text.vocab),
            grid: c.vision.grid,
        }
    }

    /// `get_image_features`: pixels [images, channels, side, side] → [images, patches, text width].
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Tensor {
        let (last, _pooled) = t.component("model.vision_model", Component::VisionTower, || {
            self.vision_model.forward(t, run, pixels)
        });
        t.component("model.aligner", Component::Connector, || {
            let [linear1, linear2] = &self.aligner;
            let mut x = linear1.call(t, &last);
            x = nn::activate(t, Activation::Gelu, x);
            linear2.call(t, &x)
        })
    }
}

impl<T: Text> Forward for DeepseekVl<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let PatchGrid { channels, image, .. } = self.grid;
        let batch = Batch::of_text(t, run);
        match run.images() {
            0 => batch,
            images => batch.with_pixels(t, run, &[images, channels, image, image]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text.loss(t, run, batch, |pixels| {
            let embeds = self.image_features(t, run, pixels);
            let all = t.reshape(&embeds, [embeds.size(0) * embeds.size(1), embeds.last()]);
            Features::Shown(all, embeds)
        })
    }
}
