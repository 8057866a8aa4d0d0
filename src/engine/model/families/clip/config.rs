//! Configuration of CLIP.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::parts::clip_vision::ClipVisionConfig;

/// CLIP: two towers, two projections and a contrastive loss.
///
/// Source: `transformers/models/clip/configuration_clip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipConfig {
    /// The text tower.
    pub text: ClipTextConfig,
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// Width of the space in which texts and images are compared.
    pub projection: u64,
}

/// CLIP's text tower: learned positions, causal attention.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipTextConfig {
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
    /// True if a text ends at its highest token id, which an `eos_token_id` of 2 in a file means; otherwise it ends at
    /// its first end token.
    pub ends_at_highest_id: bool,
}

impl ClipConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            text: ClipTextConfig::read(&tower(s, ["text_config_dict", "text_config"], "CLIP text")?)?,
            vision: ClipVisionConfig::read(&tower(s, ["vision_config_dict", "vision_config"], "CLIP vision")?)?,
            projection: s.size_or("projection_dim", 512, limits::WIDTH)?,
        })
    }
}

/// Reads a tower's section: files of 2022 repeat it under an older key, which wins in transformers.
fn tower<'a>(s: &Section<'a>, keys: [&'static str; 2], family: &'static str) -> Result<Section<'a>, ModelError> {
    match s.optional_nested(keys[0], family)? {
        Some(older) => Ok(older),
        None => s.nested_or_empty(keys[1], family),
    }
}

impl ClipTextConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 512,
        intermediate: 2048,
        layers: 12,
        heads: 8,
    };

    fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            vocab: s.size("vocab_size", 49_408, limits::VOCAB)?,
            positions: s.size("max_position_embeddings", 77, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::QuickGelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            ends_at_highest_id: s.optional_count("eos_token_id", limits::VOCAB)? == Some(2),
        })
    }
}
