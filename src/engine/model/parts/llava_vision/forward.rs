//! The vision half of LLaVA's families: a tower and a two-layer projector.

use super::features::{FeatureLayers, FeatureSelect};
use super::tower::FeatureTower;
use super::tower_config::TowerConfig;
use crate::model::config::Activation;
use crate::model::forward::Run;
use crate::nn::{self, Builder, LayerNorm, Linear};
use crate::tape::{Component, Tape, Tensor};

/// `vision_tower` and `multi_modal_projector`.
pub struct LlavaVision {
    vision_tower: FeatureTower,
    projector: Projector,
}

struct Projector {
    projector_layernorm: Option<LayerNorm>,
    linear_1: Linear,
    linear_2: Linear,
    activation: Activation,
}

/// Configuration of the vision half.
#[derive(Clone)]
pub struct LlavaVisionConfig {
    pub tower: TowerConfig,
    /// Width of the language model.
    pub text_hidden: u64,
    pub activation: Activation,
    pub bias: bool,
    /// True if a layer norm precedes the projector (VipLLaVA).
    pub has_norm: bool,
    pub feature_layers: FeatureLayers,
    pub feature_select: FeatureSelect,
    /// True if several layers are concatenated whole, and their class tokens cut off afterwards (LLaVA-NeXT).
    pub joins_first: bool,
}

impl LlavaVision {
    pub fn new(b: &Builder, c: LlavaVisionConfig) -> Self {
        Self::with_tower(b, "model.vision_tower", c)
    }

    /// Makes the vision half with the tower as the module `name`.
    pub fn with_tower(b: &Builder, name: &'static str, c: LlavaVisionConfig) -> Self {
        let selection = (c.feature_layers.clone(), c.feature_select);
        let vision_tower = FeatureTower::new(b, name, &c.tower, selection).joining_first(c.joins_first);
        let projector = b
            .tape()
            .component("model.multi_modal_projector", Component::Connector, || {
                Projector::new(b, &c)
            });
        Self {
            vision_tower,
            projector,
        }
    }

    /// Pixels [images, channels, side, side] → features [images, tokens, text width], and the other tensors that
    /// `get_image_features` holds until it returns.
    pub fn features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Vec<Tensor>) {
        let (selected, mut held) = self.vision_tower.features(t, run, pixels);
        let features = t.component("model.multi_modal_projector", Component::Connector, || {
            self.projector.forward(t, &selected)
        });
        held.push(selected);
        (features, held)
    }
}

impl Projector {
    fn new(b: &Builder, c: &LlavaVisionConfig) -> Self {
        let features = c.tower.shape().hidden * c.feature_layers.indices.len() as u64;
        let linear = |name, input| Linear::new(b, name, input, c.text_hidden, c.bias);
        Self {
            projector_layernorm: c.has_norm.then(|| LayerNorm::new(b, "projector_layernorm", features)),
            linear_1: linear("linear_1", features),
            linear_2: linear("linear_2", c.text_hidden),
            activation: c.activation,
        }
    }

    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let normed = self.projector_layernorm.as_ref().map(|norm| norm.call(t, x));
        let mut h = self.linear_1.call(t, normed.as_ref().unwrap_or(x));
        drop(normed);
        h = nn::activate(t, self.activation, h);
        self.linear_2.call(t, &h)
    }
}
