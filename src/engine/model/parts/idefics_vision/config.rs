//! Configuration of the vision tower of Idefics2, Idefics3 and SmolVLM.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid};

/// The vision tower: learned positions by relative coordinates, no class token, no head.
#[derive(Debug, Clone, PartialEq)]
pub struct IdeficsVisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Tile and patch sizes.
    pub grid: PatchGrid,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl IdeficsVisionConfig {
    /// Reads the tower of Idefics3 and SmolVLM.
    pub(crate) fn idefics3(s: &Section) -> Result<Self, ModelError> {
        let shape = EncoderShape {
            hidden: 1152,
            intermediate: 3072,
            layers: 12,
            heads: 16,
        };
        Self::read(s, shape)
    }

    /// Reads the tower of Idefics2.
    pub(crate) fn idefics2(s: &Section) -> Result<Self, ModelError> {
        let shape = EncoderShape {
            hidden: 768,
            intermediate: 3072,
            layers: 12,
            heads: 12,
        };
        Self::read(s, shape)
    }

    fn read(s: &Section, shape: EncoderShape) -> Result<Self, ModelError> {
        Ok(Self {
            shape: EncoderShape::read(s, shape)?,
            grid: PatchGrid::read(s, 224, 32)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }
}
