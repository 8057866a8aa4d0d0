//! Configuration of SigLIP's vision tower.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid};

/// SigLIP's vision tower: no class token, learned positions, an optional attention-pooling head.
///
/// Source: `SiglipVisionConfig` of `transformers/models/siglip/configuration_siglip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct SiglipVisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the tower has its attention-pooling head (`vision_use_head`).
    pub head: bool,
}

impl SiglipVisionConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["siglip_vision_model"])?;
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            grid: PatchGrid::read(s, 224, 16)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            head: s.flag("vision_use_head", true)?,
        })
    }
}
