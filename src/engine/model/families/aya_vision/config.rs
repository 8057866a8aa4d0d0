//! Configuration of Aya Vision.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, TowerConfig};

/// Aya Vision: a SigLIP tower, a pixel shuffle, a gated projector, Cohere 2.
///
/// Source: `transformers/models/aya_vision/configuration_aya_vision.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct AyaVisionConfig {
    /// The vision tower, run on each tile.
    pub vision: TowerConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Patches along each side of the square that becomes one token.
    pub shuffle: u64,
    /// Width between the projector's two linear layers, before it is gated.
    pub projector_width: u64,
    /// Hidden state that feeds the projector.
    pub feature_layers: FeatureLayers,
    /// Positions of this hidden state that become image tokens: one of each patch.
    pub feature_select: FeatureSelect,
}

impl AyaVisionConfig {
    /// Image tokens of one tile.
    pub fn image_tokens(&self) -> u64 {
        self.vision.grid().patches() / (self.shuffle * self.shuffle)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = TowerConfig::siglip_or_other(&s.nested("vision_config", "SigLIP vision")?)?;
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "cohere2")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let shuffle = s.size_or("downsample_factor", 2, limits::COUNT)?;
        s.divide(("patches a side", vision.grid().side()), ("downsample_factor", shuffle))?;
        s.only(
            "vision_feature_layer",
            "one layer: its projector is as wide as one",
            |layers| layers.as_array().is_none_or(|list| list.len() == 1),
        )?;
        let projector_width = s.size_or("alignment_intermediate_size", text.hidden, limits::WIDTH * 4)?;
        s.divide(("alignment_intermediate_size", projector_width), ("its halves", 2))?;
        Ok(Self {
            feature_layers: FeatureLayers::read(s, vision.shape().layers, 1)?,
            feature_select: vision.one_of_each_patch(s, FeatureSelect::Full)?,
            vision,
            text,
            shuffle,
            projector_width,
        })
    }
}
