//! Configuration of Qwen2-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::{DecoderConfig, DecoderDefaults};
use crate::model::families::decoders::qwen2;
use crate::model::parts::qwen_vl::QwenPatches;

/// Qwen2-VL: a tower of full attention over patches of any image size, a merger, Qwen2.
///
/// Source: `transformers/models/qwen2_vl/configuration_qwen2_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen2VlConfig {
    /// The vision tower.
    pub vision: Qwen2VlVisionConfig,
    /// The language model, with multimodal rope.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Qwen2-VL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen2VlVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream (`embed_dim`).
    pub width: u64,
    /// Width inside the MLP (`mlp_ratio` × width).
    pub intermediate: u64,
    /// Width of the merger's output: the language model's (`hidden_size`).
    pub output: u64,
    /// Activation of the MLP.
    pub activation: Activation,
}

impl Qwen2VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            vision: Qwen2VlVisionConfig::read(&s.nested("vision_config", "Qwen2-VL vision")?)?,
            text: read_text(s)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
        })
    }
}

impl Qwen2VlVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patches = QwenPatches::read(s, 32, 14)?;
        let width = s.size("embed_dim", 1280, limits::WIDTH)?;
        s.divide(("embed_dim", width), ("num_heads", patches.heads))?;
        Ok(Self {
            patches,
            width,
            intermediate: width * s.size_or("mlp_ratio", 4, limits::COUNT)?,
            output: s.size("hidden_size", 3584, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::QuickGelu)?,
        })
    }
}

/// `Qwen2VLTextConfig` and `Qwen2_5_VLTextConfig`.
const TEXT_DEFAULTS: DecoderDefaults = DecoderDefaults {
    vocab: 152_064,
    hidden: 8192,
    intermediate: 29_568,
    layers: 80,
    heads: 64,
    kv_heads: Some(8),
    theta: 1e6,
    max_window_layers: 80,
    ..DecoderDefaults::QWEN2
};

/// Reads the language model of Qwen2-VL or Qwen2.5-VL, under `text_config`, or flat in the file as in files of 2024 and
/// 2025.
pub(crate) fn read_text(s: &Section) -> Result<DecoderConfig, ModelError> {
    let text = s.optional_nested("text_config", "Qwen2-VL language")?;
    let mut decoder = DecoderConfig::read_with(&text.unwrap_or(*s), &qwen2::FAMILY, &TEXT_DEFAULTS)?;
    decoder.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
    Ok(decoder)
}
