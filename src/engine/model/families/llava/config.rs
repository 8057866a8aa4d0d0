//! Configuration of LLaVA-1.5.

use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::clip_vision::ClipVisionConfig;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect};

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
    /// Hidden states that feed the projector, concatenated along the width.
    pub feature_layers: FeatureLayers,
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
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: FeatureLayers::read(s, vision.layers, 2)?,
            vision,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select: FeatureSelect::read(s)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
        })
    }
}
