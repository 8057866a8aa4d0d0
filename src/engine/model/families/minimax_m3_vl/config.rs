//! Configuration of MiniMax-M3.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders::minimax_m3;
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};

/// MiniMax-M3: a tower over the patches of all images at once, a projector that joins patches, and a decoder with experts.
///
/// Source: `transformers/models/minimax_m3_vl/configuration_minimax_m3_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniMaxM3VlConfig {
    /// The vision tower.
    pub vision: M3VisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Width inside the projector.
    pub projector: u64,
}

/// MiniMax-M3's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct M3VisionConfig {
    /// Patches, and the squares of them that become one token.
    pub patches: QwenPatches,
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

/// `MiniMaxM3VLVisionConfig`.
const SHAPE: EncoderShape = EncoderShape {
    hidden: 1280,
    intermediate: 5120,
    layers: 32,
    heads: 16,
};

impl MiniMaxM3VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "MiniMax-M3 language")?;
        let vision = s.nested_or_empty("vision_config", "MiniMax-M3 vision")?;
        let mut text = DecoderConfig::read(&text, &minimax_m3::FAMILY)?;
        text.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: M3VisionConfig::read(&vision)?,
            text,
            projector: s.size("projector_hidden_size", 6144, limits::WIDTH)?,
        })
    }
}

impl M3VisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let shape = EncoderShape::read(s, SHAPE)?;
        let head = shape.head_dim();
        let rotated = (head / 2).div_ceil(2) * 4;
        s.only(
            "hidden_size",
            "a width whose heads are as wide as their rotary positions",
            |_| rotated <= head,
        )?;
        let patch = s.side("patch_size", 14, limits::PIXELS)?;
        let merge = s.size("spatial_merge_size", 2, limits::COUNT)?;
        Ok(Self {
            patches: QwenPatches {
                layers: shape.layers,
                heads: shape.heads,
                channels: s.channels()?,
                patch,
                temporal_patch: s.side("temporal_patch_size", 2, limits::COUNT)?,
                merge,
                resize: RESIZE,
            },
            shape,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }
}

/// `MiniMaxM3VLImageProcessor.size`.
const RESIZE: Resize = Resize {
    pixels: [4 * 28 * 28, 451_584],
    widening: Widening::Never,
};
