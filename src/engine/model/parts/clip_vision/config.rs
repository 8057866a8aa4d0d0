//! Configuration of CLIP's vision tower.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};

/// CLIP's vision tower: class token, learned positions, layer norms before each part.
///
/// Source: `transformers/models/clip/configuration_clip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipVisionConfig {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Colour channels.
    pub channels: u64,
    /// Pixels a side of the image.
    pub image: u64,
    /// Pixels a side of a patch.
    pub patch: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Width of the contrastive projection (used by the full CLIP model, not by the tower).
    pub projection: u64,
}

impl ClipVisionConfig {
    /// Patches of one image: `(image ÷ patch)²`, with partial patches dropped as the convolution does.
    pub fn patches(&self) -> u64 {
        (self.image / self.patch).pow(2)
    }

    /// Positions of one image: the patches and the class token.
    pub fn positions(&self) -> u64 {
        self.patches() + 1
    }

    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Self::read_with_patch(s, 32)
    }

    /// Reads a tower whose patches have `patch` pixels a side if the configuration does not say.
    pub(crate) fn read_with_patch(s: &Section, patch: u64) -> Result<Self, ModelError> {
        let default = EncoderShape {
            hidden: 768,
            intermediate: 3072,
            layers: 12,
            heads: 12,
        };
        Ok(Self {
            projection: s.size_or("projection_dim", 512, limits::WIDTH)?,
            ..Self::read_without_projection(s, default, patch)?
        })
    }

    /// Reads a tower alone, with these sizes, and `patch` pixels a side of a patch, if the configuration does not say.
    pub(crate) fn read_without_projection(s: &Section, default: EncoderShape, patch: u64) -> Result<Self, ModelError> {
        let shape = EncoderShape::read(s, default)?;
        let image = s.side("image_size", 224, limits::PIXELS)?;
        Ok(Self {
            hidden: shape.hidden,
            intermediate: shape.intermediate,
            layers: shape.layers,
            heads: shape.heads,
            channels: s.size_or("num_channels", 3, limits::COUNT)?,
            image,
            patch: s.side("patch_size", patch, image)?,
            activation: s.activation("hidden_act", Activation::QuickGelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            projection: 0,
        })
    }
}
