//! VipLLaVA (`transformers/models/vipllava/modeling_vipllava.py`).

use super::config::VipLlavaConfig;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_text::ImageText;
use crate::model::parts::llava_vision::{FeatureSelect, LlavaVision, LlavaVisionConfig, TowerConfig};
use crate::nn::Builder;
use crate::tape::{Tape, Tensor};

/// `VipLlavaForConditionalGeneration`.
pub struct VipLlava<T> {
    vision: LlavaVision,
    text: ImageText<T>,
    image: [u64; 2],
}

impl<T: Text> VipLlava<T> {
    pub fn new(b: &Builder, c: &VipLlavaConfig) -> Self {
        let parts = LlavaVisionConfig {
            tower: TowerConfig::Clip(c.vision.clone()),
            text_hidden: c.text.hidden,
            activation: c.projector_activation,
            bias: true,
            has_norm: true,
            feature_layers: c.feature_layers.clone(),
            feature_select: FeatureSelect::Default,
            joins_first: false,
        };
        Self {
            vision: LlavaVision::new(b, parts),
            text: ImageText::new(b, &c.text).looking_up(c.image_token, c.text.vocab),
            image: [c.vision.channels, c.vision.image],
        }
    }
}

impl<T: Text> Forward for VipLlava<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        self.text.next_logits(t, run, ids)
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, side] = self.image;
        let batch = Batch::of_text(t, run);
        match run.images() {
            0 => batch,
            images => batch.with_pixels(t, run, &[images, channels, side, side]),
        }
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        self.text
            .loss(t, run, batch, |pixels| self.vision.features(t, run, pixels).0.into())
    }
}
