//! The vision half of LLaVA-1.5 and LLaVA-NeXT: a CLIP tower and a two-layer projector.

use super::features::FeatureSelect;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::model::parts::clip_vision::{ClipVision, ClipVisionConfig};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `vision_tower` and `multi_modal_projector`.
pub struct LlavaVision {
    vision_tower: ClipVision,
    linear_1: Linear,
    linear_2: Linear,
    config: LlavaVisionConfig,
}

/// Configuration of the vision half, common to both families.
#[derive(Clone)]
pub struct LlavaVisionConfig {
    pub tower: ClipVisionConfig,
    /// Width of the language model.
    pub text_hidden: u64,
    pub activation: Activation,
    pub bias: bool,
    pub feature_layers: Vec<u64>,
    pub feature_select: FeatureSelect,
    /// True if several layers are concatenated whole, and their class tokens cut off afterwards (LLaVA-NeXT).
    pub joins_first: bool,
}

impl LlavaVision {
    pub fn new(b: &Builder, c: LlavaVisionConfig) -> Self {
        let t = b.tape();
        let vision_tower = t.component("model.vision_tower", Component::VisionTower, || {
            ClipVision::new(b, &c.tower)
        });
        let features = c.tower.hidden * c.feature_layers.len() as u64;
        let (linear_1, linear_2) = t.component("model.multi_modal_projector", Component::Connector, || {
            let linear = |name, input| Linear::new(b, name, input, c.text_hidden, c.bias);
            (linear("linear_1", features), linear("linear_2", c.text_hidden))
        });
        Self {
            vision_tower,
            linear_1,
            linear_2,
            config: c,
        }
    }

    /// Pixels [images, channels, side, side] → features [images, tokens, text width], and the other tensors that
    /// `get_image_features` holds until it returns.
    pub fn features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Vec<Tensor>) {
        let mut hidden_states = Vec::new();
        let output = t.component("model.vision_tower", Component::VisionTower, || {
            self.vision_tower
                .forward(t, run, pixels, |h| hidden_states.push(h.clone()))
        });
        let cut = |h: &Tensor| match self.config.feature_select {
            FeatureSelect::Default => t.slice(h, 1, h.size(1) - 1),
            FeatureSelect::Full => h.clone(),
        };
        let joins_first = self.config.joins_first;
        let chosen = self.config.feature_layers.iter().map(|&i| {
            let h = &hidden_states[i as usize];
            if joins_first { h.clone() } else { cut(h) }
        });
        let chosen: Vec<Tensor> = chosen.collect();
        let mut selected = match &chosen[..] {
            [one] => one.clone(),
            many => t.cat(&many.iter().collect::<Vec<_>>(), 2),
        };
        drop(chosen);
        if joins_first {
            selected = cut(&selected);
        }
        let features = t.component("model.multi_modal_projector", Component::Connector, || {
            self.project(t, &selected)
        });
        let mut held = hidden_states;
        held.extend([output.last, output.pooled, selected]);
        (features, held)
    }

    fn project(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut h = t.scope("linear_1", || self.linear_1.forward(t, x));
        h = nn::activate(t, self.config.activation, h);
        t.scope("linear_2", || self.linear_2.forward(t, &h))
    }
}
