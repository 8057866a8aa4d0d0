//! LLaVA-1.5 (`transformers/models/llava/modeling_llava.py`).

use super::config::LlavaConfig;
use crate::model::decoder::head::logits_and_loss;
use crate::model::decoder::text::Text;
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::model::parts::image_tokens::merge_images;
use crate::model::parts::llava_vision::{LlavaVision, LlavaVisionConfig};
use crate::nn::{Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `LlavaForConditionalGeneration`.
pub struct Llava<T> {
    vision: LlavaVision,
    language_model: T,
    lm_head: Option<Linear>,
    image: [u64; 2],
}

impl<T: Text> Llava<T> {
    pub fn new(b: &Builder, c: &LlavaConfig) -> Self {
        let parts = LlavaVisionConfig {
            tower: c.vision.clone(),
            text_hidden: c.text.hidden,
            activation: c.projector_activation,
            bias: c.projector_bias,
            feature_layers: c.feature_layers.clone(),
            feature_select: c.feature_select,
            joins_first: false,
        };
        let vision = LlavaVision::new(b, parts);
        let language_model = b
            .tape()
            .component("model.language_model", Component::LanguageModel, || T::new(b, &c.text));
        let lm_head = language_model.head(b, &c.text);
        Self {
            vision,
            language_model,
            lm_head,
            image: [c.vision.channels, c.vision.image],
        }
    }
}

impl<T: Text> Forward for Llava<T> {
    fn next_logits(&self, t: &Tape, run: &Run, ids: &Tensor) -> Option<Tensor> {
        Some(self.language_model.next_logits(t, run, self.lm_head.as_ref()?, ids))
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, side] = self.image;
        let images = run.setup.batch * run.setup.images;
        Batch::of_text(t, run).with_pixels(t, run, &[images, channels, side, side])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let (features, held) = self.vision.features(t, run, pixels);
        let parts = t.component("model", Component::Connector, || t.unbind(&features));
        drop((features, held));
        let (embeds, features, mask) = merge_images(t, ids, embeds, parts);
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds)
        });
        drop(mask);
        let mut output = logits_and_loss(t, self.lm_head.as_ref(), h, batch);
        output.held.push(features);
        output
    }
}
