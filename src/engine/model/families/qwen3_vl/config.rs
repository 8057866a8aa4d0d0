//! Configuration of Qwen3-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{DecoderConfig, DecoderDefaults};
use crate::model::families::decoders::qwen3;
use crate::model::parts::qwen3_vision::Qwen3VlVisionConfig;

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
            vision: Qwen3VlVisionConfig::read(&s.nested("vision_config", "Qwen3-VL vision")?, true)?,
            text,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
        })
    }
}
