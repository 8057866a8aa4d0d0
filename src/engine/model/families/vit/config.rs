//! Configuration of ViT.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};

/// ViT for image classification.
///
/// Source: `transformers/models/vit/configuration_vit.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct VitConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Classes.
    pub labels: u64,
}

impl VitConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let shape = EncoderShape::read(s, Self::SHAPE)?;
        // `ViTAttention` reads `head_dim` though `ViTConfig` has no such field.
        if let Some(given) = s.optional_size("head_dim", limits::HEAD_DIM)? {
            s.equal(
                ("head_dim", given),
                ("hidden_size ÷ num_attention_heads", shape.head_dim()),
            )?;
        }
        Ok(Self {
            shape,
            grid: PatchGrid::read(s, 224, 16)?,
            qkv_bias: s.flag("qkv_bias", true)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            hidden_dropout: s.probability("hidden_dropout_prob", 0.0)?,
            attention_dropout: s.probability("attention_probs_dropout_prob", 0.0)?,
            labels: s.labels()?,
        })
    }
}
