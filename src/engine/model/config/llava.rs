//! Configuration of LLaVA-1.5.

use super::section::Section;
use super::{Activation, ClipVisionConfig, DecoderConfig};
use crate::model::ModelError;
use crate::model::family;

/// Positions of the vision tower's output that become image tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureSelect {
    /// All but the class token.
    Default,
    /// All.
    Full,
}

/// LLaVA-1.5: a CLIP tower, a two-layer projector, any decoder.
///
/// Source: `transformers/models/llava/configuration_llava.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct LlavaConfig {
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// The language model; its `tie_word_embeddings` already includes the outer one.
    pub text: DecoderConfig,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// True if the projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden states that feed the projector, concatenated along the width: 0 is the tower's embedding, `n` the output
    /// of its block `n`; negative indices are already resolved.
    pub feature_layers: Vec<u64>,
    /// Positions of these hidden states that become image tokens.
    pub feature_select: FeatureSelect,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl LlavaConfig {
    /// Image tokens of one image.
    pub fn image_tokens(&self) -> u64 {
        match self.feature_select {
            FeatureSelect::Default => self.vision.patches(),
            FeatureSelect::Full => self.vision.positions(),
        }
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let tower = s.nested("vision_config", "CLIP vision")?;
        tower.expect_model_type(&["clip_vision_model"])?;
        let vision = ClipVisionConfig::read(&tower)?;
        let mut text = family::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: feature_layers(s, vision.layers)?,
            vision,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select: FeatureSelect::read(s)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
        })
    }
}

impl FeatureSelect {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let key = "vision_feature_select_strategy";
        match s.optional_text(key)? {
            None | Some("default") => Ok(Self::Default),
            Some("full") => Ok(Self::Full),
            Some(other) => Err(s.wrong(key, &other.into(), "\"default\" or \"full\"")),
        }
    }
}

/// Reads `vision_feature_layer`, one number or a list, negative ones counted from the last hidden state.
pub(crate) fn feature_layers(s: &Section, layers: u64) -> Result<Vec<u64>, ModelError> {
    let key = "vision_feature_layer";
    let Some(value) = s.value(key) else {
        return Ok(vec![layers.saturating_sub(1)]);
    };
    let states = layers as i64 + 1;
    let from_front = |n: i64| if n < 0 { states.checked_add(n) } else { Some(n) };
    let state = |v: &serde_json::Value| {
        let n = v.as_i64().and_then(from_front).filter(|n| (0..states).contains(n));
        n.map(|n| n as u64)
            .ok_or_else(|| s.wrong(key, v, &format!("a layer from {} to {layers}", -states)))
    };
    match value.as_array() {
        Some(list) if list.is_empty() => Err(s.wrong(key, value, "at least one layer")),
        Some(list) => list.iter().map(state).collect(),
        None => Ok(vec![state(value)?]),
    }
}
