//! Configuration of VideoMAE.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid, limits};

/// VideoMAE for video classification.
///
/// Source: `transformers/models/videomae/configuration_videomae.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoMaeConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Frame and patch sizes.
    pub grid: PatchGrid,
    /// Frames of one video.
    pub frames: u64,
    /// Frames of a patch.
    pub tubelet: u64,
    /// True if query, key and value projections have biases.
    pub qkv_bias: bool,
    /// True if patches are averaged and then normalised; false if the first patch represents all.
    pub mean_pooling: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Classes.
    pub labels: u64,
}

impl VideoMaeConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 12,
    };

    /// Positions of one video: (frames ÷ tubelet) × patches of a frame.
    pub fn positions(&self) -> u64 {
        self.frames / self.tubelet * self.grid.patches()
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let frames = s.size_or("num_frames", 16, limits::COUNT)?;
        Ok(Self {
            shape: EncoderShape::read(s, Self::SHAPE)?,
            grid: PatchGrid::read(s, 224, 16)?,
            frames,
            tubelet: s.size_or("tubelet_size", 2.min(frames), frames)?,
            qkv_bias: s.flag("qkv_bias", true)?,
            mean_pooling: s.flag("use_mean_pooling", true)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            hidden_dropout: s.probability("hidden_dropout_prob", 0.0)?,
            attention_dropout: s.probability("attention_probs_dropout_prob", 0.0)?,
            labels: s.labels()?,
        })
    }
}
