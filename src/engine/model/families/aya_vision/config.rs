//! Configuration of Aya Vision and Cohere 2 Vision.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::llava_vision::{FeatureLayers, FeatureSelect, TowerConfig};
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// `model_type` of Cohere 2 Vision.
pub(super) const COHERE2: &str = "cohere2_vision";

/// Aya Vision and Cohere 2 Vision: a SigLIP tower, a pixel shuffle, a gated projector, Cohere 2.
///
/// Sources: `transformers/models/aya_vision/configuration_aya_vision.py`,
/// `transformers/models/cohere2_vision/configuration_cohere2_vision.py`.
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
    /// Hidden state that feeds the projector, and positions of it that become image tokens, one of each patch; `None`
    /// if the tower's output does (Cohere 2 Vision).
    pub selection: Option<(FeatureLayers, FeatureSelect)>,
}

impl AyaVisionConfig {
    /// Image tokens of one tile.
    pub fn image_tokens(&self) -> u64 {
        self.vision.grid().patches() / (self.shuffle * self.shuffle)
    }

    /// True for Cohere 2 Vision.
    pub(super) fn is_cohere2(&self) -> bool {
        self.selection.is_none()
    }

    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let is_cohere2 = model_type == COHERE2;
        let vision = s.nested("vision_config", "SigLIP vision")?;
        let vision = match is_cohere2 {
            true => TowerConfig::Siglip(SiglipVisionConfig::read(&vision)?),
            false => TowerConfig::siglip_or_other(&vision)?,
        };
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "cohere2")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let shuffle = s.size_or("downsample_factor", 2, limits::COUNT)?;
        s.divide(("patches a side", vision.grid().side()), ("downsample_factor", shuffle))?;
        let width = if is_cohere2 { 36_864 } else { text.hidden };
        let projector_width = s.size_or("alignment_intermediate_size", width, limits::WIDTH * 4)?;
        if !projector_width.is_multiple_of(2) {
            let allowed = "an even width, of which one half gates the other";
            return Err(s.wrong("alignment_intermediate_size", &projector_width.into(), allowed));
        }
        Ok(Self {
            selection: (!is_cohere2).then(|| selection(s, &vision)).transpose()?,
            vision,
            text,
            shuffle,
            projector_width,
        })
    }
}

/// Reads which hidden state feeds the projector, and which of its positions.
fn selection(s: &Section, vision: &TowerConfig) -> Result<(FeatureLayers, FeatureSelect), ModelError> {
    s.only(
        "vision_feature_layer",
        "one layer: its projector is as wide as one",
        |layers| layers.as_array().is_none_or(|list| list.len() == 1),
    )?;
    Ok((
        FeatureLayers::read(s, vision.shape().layers, 1)?,
        vision.one_of_each_patch(s, FeatureSelect::Full)?,
    ))
}
