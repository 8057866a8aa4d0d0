//! Configuration of the thinker of Qwen2.5-Omni.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{DecoderConfig, DecoderDefaults, DecoderFamily, WindowLength};
use crate::model::families::decoders::qwen2;
use crate::model::families::qwen2_5_vl::Qwen25VlVisionConfig;
use crate::model::parts::omni::{AudioConfig, check_tokens, sections};

/// Thinker of Qwen2.5-Omni: an audio encoder, Qwen2.5-VL's tower with three projections in place of one, Qwen2.
///
/// Source: `transformers/models/qwen2_5_omni/configuration_qwen2_5_omni.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen25OmniConfig {
    /// The audio encoder.
    pub audio: AudioConfig,
    /// The vision tower.
    pub vision: Qwen25VlVisionConfig,
    /// The language model, with multimodal rope.
    pub text: DecoderConfig,
}

/// `Qwen2_5OmniTextConfig`.
static TEXT: DecoderFamily = DecoderFamily {
    defaults: DecoderDefaults {
        vocab: 152_064,
        hidden: 3584,
        intermediate: 18_944,
        layers: 28,
        heads: 28,
        kv_heads: Some(4),
        theta: 1e6,
        ..DecoderDefaults::QWEN2
    },
    windows: crate::model::decoder::Windows {
        length: WindowLength::Or(32_768),
        ..qwen2::FAMILY.windows
    },
    ..qwen2::FAMILY
};

impl Qwen25OmniConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let section = s.nested_or_empty("text_config", "Qwen2.5-Omni language")?;
        let mut text = DecoderConfig::read(&section, &TEXT)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        check_tokens(s)?;
        sections(s, &text)?;
        let audio = s.nested_or_empty("audio_config", "Qwen2.5-Omni audio")?;
        let vision = s.nested_or_empty("vision_config", "Qwen2.5-Omni vision")?;
        Ok(Self {
            audio: AudioConfig::read(&audio, None)?,
            vision: Qwen25VlVisionConfig::read_apart(&vision)?,
            text,
        })
    }
}
