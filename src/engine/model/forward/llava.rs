//! LLaVA-1.5 (`transformers/models/llava/modeling_llava.py`).

use super::clip_vision::ClipVision;
use super::decoder::{Decoder, head, logits_and_loss};
use super::{Batch, Forward, Output, Run};
use crate::dtype::DType;
use crate::model::config::{Activation, FeatureSelect, LlavaConfig};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `LlavaForConditionalGeneration`.
pub struct Llava {
    vision_tower: ClipVision,
    projector: Projector,
    language_model: Decoder,
    lm_head: Linear,
    image: [u64; 2],
    feature_layers: Vec<u64>,
    feature_select: FeatureSelect,
}

struct Projector {
    linear_1: Linear,
    linear_2: Linear,
    activation: Activation,
}

impl Llava {
    pub fn new(b: &Builder, c: &LlavaConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            ClipVision::new(b, &c.vision)
        });
        let features = c.vision.hidden * c.feature_layers.len() as u64;
        let projector = t.component("model.multi_modal_projector", Component::Connector, || Projector {
            linear_1: Linear::new(b, "linear_1", features, c.text.hidden, c.projector_bias),
            linear_2: Linear::new(b, "linear_2", c.text.hidden, c.text.hidden, c.projector_bias),
            activation: c.projector_activation,
        });
        let language_model = t.component("model.language_model", Component::LanguageModel, || {
            Decoder::new(b, &c.text)
        });
        let lm_head = head(b, &c.text, &language_model);
        Self {
            vision_tower,
            projector,
            language_model,
            lm_head,
            image: [c.vision.channels, c.vision.image],
            feature_layers: c.feature_layers.clone(),
            feature_select: c.feature_select,
        }
    }

    /// Pixels → image features [images, tokens, hidden], one tensor for each image.
    fn image_features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Vec<Tensor>, Vec<Tensor>) {
        let mut hidden_states = Vec::new();
        let output = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower
                .forward(t, run, pixels, |h| hidden_states.push(h.clone()))
        });
        let chosen = |&i: &u64| {
            let h = &hidden_states[i as usize];
            match self.feature_select {
                FeatureSelect::Default => t.slice(h, 1, h.size(1) - 1),
                FeatureSelect::Full => h.clone(),
            }
        };
        let selected: Vec<Tensor> = self.feature_layers.iter().map(chosen).collect();
        let selected = match &selected[..] {
            [one] => one.clone(),
            many => t.cat(&many.iter().collect::<Vec<_>>(), 2),
        };
        let features = t.component("model.multi_modal_projector", Component::Connector, || {
            self.projector.forward(t, &selected)
        });
        let mut held = hidden_states;
        held.extend([output.last, output.pooled]);
        (t.unbind(&features), held)
    }
}

impl Forward for Llava {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, side] = self.image;
        let images = run.setup.batch * run.setup.images;
        Batch::of_text(t, run).with_pixels(t, run, &[images, channels, side, side])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let (Some(ids), Some(pixels)) = (&batch.ids, &batch.pixels) else {
            unreachable!("a batch has ids and pixels")
        };
        let mut embeds = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.embed(t, run, ids)
        });
        let (features, held) = self.image_features(t, run, pixels);
        drop(held);
        let features = t.component("model", Component::Connector, || {
            let parts = features;
            let features = t.to_dtype(&t.cat(&parts.iter().collect::<Vec<_>>(), 0), embeds.dtype());
            drop(parts);
            let mask = placeholder_mask(t, ids);
            let merged = t.masked_scatter(&embeds, &mask, &features);
            embeds = merged;
            features
        });
        let h = t.component("model.language_model", Component::LanguageModel, || {
            self.language_model.forward(t, run, embeds)
        });
        let mut output = logits_and_loss(t, &self.lm_head, h, batch);
        output.held.push(features);
        output
    }
}

/// `get_placeholder_mask`: where token ids are the image token, [batch, seq, 1].
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

impl Projector {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("linear_1", || self.linear_1.forward(t, x));
        h = nn::activate(t, self.activation, h);
        t.scope("linear_2", || self.linear_2.forward(t, &h))
    }
}
