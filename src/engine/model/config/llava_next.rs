use serde_json::Value;

use super::llava::{FeatureSelect, feature_layers};
use super::section::Section;
use super::{Activation, ClipVisionConfig, DecoderConfig, limits};
use crate::model::ModelError;
use crate::model::family;

/// LLaVA-NeXT (1.6): LLaVA with any-resolution tiles.
///
/// Source: `transformers/models/llava_next/configuration_llava_next.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct LlavaNextConfig {
    /// The vision tower, run on each tile and on the whole image.
    pub vision: ClipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// The projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden states that feed the projector, counted from the front.
    pub feature_layers: Vec<u64>,
    /// Which positions of them.
    pub feature_select: FeatureSelect,
    /// Resolutions `[height, width]` in pixels to which an image may be fitted.
    pub pinpoints: Vec<[u64; 2]>,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl LlavaNextConfig {
    const PINPOINTS: [[u64; 2]; 5] = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]];

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let tower = s.nested("vision_config", "CLIP vision")?;
        tower.expect_model_type(&["clip_vision_model"])?;
        let vision = ClipVisionConfig::read(&tower)?;
        let mut text = family::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: feature_layers(s, vision.layers)?,
            vision,
            text,
            projector_activation: Activation::read(s, "projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select: FeatureSelect::read(s)?,
            pinpoints: pinpoints(s)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
        })
    }
}

fn pinpoints(s: &Section) -> Result<Vec<[u64; 2]>, ModelError> {
    let key = "image_grid_pinpoints";
    let Some(value) = s.value(key) else {
        return Ok(LlavaNextConfig::PINPOINTS.to_vec());
    };
    let list: Option<Vec<_>> = value.as_array().and_then(|list| list.iter().map(pair).collect());
    list.filter(|list| !list.is_empty()).ok_or_else(|| {
        s.wrong(
            key,
            value,
            "a list of [height, width] in pixels, such as [[336, 672], [672, 336]]",
        )
    })
}

fn pair(value: &Value) -> Option<[u64; 2]> {
    let [a, b] = value.as_array()?.as_slice() else {
        return None;
    };
    let side = |v: &Value| v.as_u64().filter(|n| (1..=limits::PIXELS).contains(n));
    Some([side(a)?, side(b)?])
}
