//! Configuration of SigLIP 2's vision tower.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};

/// SigLIP 2's vision tower: patches that the processor cuts, learned positions that are resized to each image, an optional
/// attention-pooling head.
///
/// Source: `Siglip2VisionConfig` of `transformers/models/siglip2/configuration_siglip2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Siglip2VisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Colour channels.
    pub channels: u64,
    /// Pixels a side of a patch.
    pub patch: u64,
    /// Learned positions along one side of their square grid.
    pub side: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the tower has its attention-pooling head (`vision_use_head`).
    pub head: bool,
}

impl Siglip2VisionConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["siglip2_vision_model"])?;
        let positions = s.size("num_patches", 256, limits::POSITIONS)?;
        let side = positions.isqrt();
        s.only("num_patches", "the square of a whole number", |_| {
            side * side == positions
        })?;
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            channels: s.channels()?,
            patch: s.side("patch_size", 16, limits::PIXELS)?,
            side,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            head: s.flag("vision_use_head", true)?,
        })
    }

    /// Elements of one patch.
    pub const fn patch_elements(&self) -> u64 {
        self.channels * self.patch * self.patch
    }
}
