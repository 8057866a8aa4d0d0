//! Configuration of SigLIP.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// SigLIP: two towers and a sigmoid loss over all pairs.
///
/// Source: `transformers/models/siglip/configuration_siglip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct SiglipConfig {
    /// The text tower.
    pub text: SiglipTextConfig,
    /// The vision tower.
    pub vision: SiglipVisionConfig,
}

/// SigLIP's text tower.
#[derive(Debug, Clone, PartialEq)]
pub struct SiglipTextConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Learned positions.
    pub positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Width of the head's output.
    pub projection: u64,
}

impl SiglipConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            text: SiglipTextConfig::read(&s.nested_or_empty("text_config", "SigLIP text")?)?,
            vision: SiglipVisionConfig::read(&s.nested_or_empty("vision_config", "SigLIP vision")?)?,
        })
    }
}

impl SiglipTextConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    fn read(s: &Section) -> Result<Self, ModelError> {
        let shape = EncoderShape::read(s, Self::SHAPE)?;
        Ok(Self {
            vocab: s.size("vocab_size", 32_000, limits::VOCAB)?,
            positions: s.size("max_position_embeddings", 64, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            projection: s.size_or("projection_size", shape.hidden, limits::WIDTH)?,
            shape,
        })
    }
}
