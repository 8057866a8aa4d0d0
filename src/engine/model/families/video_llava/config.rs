//! Configuration of Video-LLaVA.

use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, TowerConfig};

/// Video-LLaVA: LLaVA with a second tower, for videos. Only images are simulated.
///
/// Source: `transformers/models/video_llava/configuration_video_llava.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoLlavaConfig {
    /// Each of both vision towers.
    pub vision: TowerConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
    /// Activation between the projector's two linear layers.
    pub projector_activation: Activation,
    /// True if the projector's linear layers have biases.
    pub projector_bias: bool,
    /// Hidden states that feed the projector, concatenated along the width.
    pub feature_layers: FeatureLayers,
    /// Positions of these hidden states that become image tokens.
    pub feature_select: FeatureSelect,
}

impl VideoLlavaConfig {
    /// Image tokens of one image.
    pub fn image_tokens(&self) -> u64 {
        match self.feature_select {
            FeatureSelect::Default => self.vision.positions() - 1,
            FeatureSelect::Full => self.vision.positions(),
        }
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = TowerConfig::clip_or_other(&s.nested("vision_config", "CLIP vision")?)?;
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            feature_layers: FeatureLayers::read(s, vision.shape().layers, 2)?,
            vision,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 32_000)?,
            text,
            projector_activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            projector_bias: s.flag("multimodal_projector_bias", true)?,
            feature_select: FeatureSelect::read(s)?,
        })
    }
}
