//! Configuration of towers over packed patches.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::parts::qwen_vl::{QwenPatches, Resize};

/// A tower of SigLIP's blocks over packed patches.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedVisionConfig {
    /// Patches, and how images become some.
    pub patches: QwenPatches,
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl PackedVisionConfig {
    /// Reads a tower with the given defaults, `patch` pixels a side of a patch among them; `merge` patches along each side
    /// of a square become one token.
    pub(crate) fn read(
        s: &Section,
        shape: EncoderShape,
        patch: u64,
        (merge, resize): (u64, Resize),
    ) -> Result<Self, ModelError> {
        let shape = EncoderShape::read(s, shape)?;
        Ok(Self {
            patches: QwenPatches {
                layers: shape.layers,
                heads: shape.heads,
                channels: s.channels()?,
                patch: s.side("patch_size", patch, limits::PIXELS)?,
                temporal_patch: 1,
                merge,
                resize,
            },
            shape,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }
}
