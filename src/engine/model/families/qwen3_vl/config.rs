//! Configuration of Qwen3-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::{DecoderConfig, DecoderDefaults};
use crate::model::families::decoders::qwen3;
use crate::model::parts::qwen_vl::QwenPatches;

/// Qwen3-VL: a tower with learned and rotary positions whose inner layers also feed the first
/// layers of the language model (deepstack), Qwen3.
///
/// Source: `transformers/models/qwen3_vl/configuration_qwen3_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen3VlConfig {
    /// The vision tower.
    pub vision: Qwen3VlVisionConfig,
    /// The language model, with interleaved multimodal rope.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Qwen3-VL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen3VlVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Width of each merger's output: the language model's.
    pub output: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Learned positions, a square grid that is interpolated to the image's grid.
    pub positions: u64,
    /// Blocks after which a merger feeds the language model.
    pub deepstack_layers: Vec<u64>,
}

/// `Qwen3VLTextConfig`.
const TEXT_DEFAULTS: DecoderDefaults = DecoderDefaults {
    head_dim: Some(128),
    max_positions: 128_000,
    theta: 5e5,
    ..DecoderDefaults::QWEN2
};

impl Qwen3VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "Qwen3-VL language")?;
        let mut text = DecoderConfig::read_with(&text, &qwen3::FAMILY, &TEXT_DEFAULTS)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: Qwen3VlVisionConfig::read(&s.nested("vision_config", "Qwen3-VL vision")?)?,
            text,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
        })
    }
}

impl Qwen3VlVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patches = QwenPatches::read(s, 27, 16)?;
        let width = s.size("hidden_size", 1152, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
        let deepstack = s.optional_indices("deepstack_visual_indexes", patches.layers - 1)?;
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 4304, limits::WIDTH * 4)?,
            output: s.size("out_hidden_size", 3584, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            positions: s.size("num_position_embeddings", 2304, limits::POSITIONS)?,
            deepstack_layers: deepstack.unwrap_or_else(|| vec![8, 16, 24]),
        })
    }
}
