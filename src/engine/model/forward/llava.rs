//! LLaVA-1.5 (`transformers/models/llava/modeling_llava.py`).

use super::decoder::logits_and_loss;
use super::llava_vision::{LlavaVision, LlavaVisionConfig};
use super::text::Text;
use super::{Batch, Forward, Output, Run};
use crate::dtype::DType;
use crate::model::config::LlavaConfig;
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

/// Writes the features of images, [tokens, width] each, over their tokens' embeddings, [batch, seq, width]. Returns the
/// embeddings, and the tensors that the model's forward holds: the features of all images, and the mask of their
/// tokens.
pub fn merge_images(t: &Tape, ids: &Tensor, embeds: Tensor, parts: Vec<Tensor>) -> (Tensor, Tensor, Tensor) {
    t.component("model", Component::Connector, || {
        let features = t.to_dtype(&t.cat(&parts.iter().collect::<Vec<_>>(), 0), embeds.dtype());
        drop(parts);
        let mask = placeholder_mask(t, ids);
        let merged = t.place_features(&embeds, &mask, &features);
        (merged, features, mask)
    })
}

/// `get_placeholder_mask`: mask of the image tokens, [batch, seq, 1].
pub fn placeholder_mask(t: &Tape, ids: &Tensor) -> Tensor {
    let mask = t.compute(ids, DType::Bool, "image token mask");
    let count = t.empty([], DType::I64, "number of image tokens");
    drop(t.compute(&mask, DType::I64, "mask as integers"));
    let mask = t.unsqueeze(&mask, 2);
    let elements = t.empty([], DType::I64, "number of image token elements");
    let equal = t.empty([], DType::Bool, "comparison");
    drop(elements);
    drop(t.empty([], DType::Bool, "all"));
    drop((equal, count));
    mask
}
