//! Configuration of Qwen3.5 and Qwen3.5-MoE.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::parts::delta_decoder::{DeltaDecoderConfig, QWEN3_5, QWEN3_5_MOE};
use crate::model::parts::qwen3_vision::Qwen3VlVisionConfig;

/// Qwen3.5: Qwen3-VL's tower without deepstack, and a decoder with gated DeltaNet.
///
/// Source: `transformers/models/qwen3_5/configuration_qwen3_5.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen35Config {
    /// The vision tower.
    pub vision: Qwen3VlVisionConfig,
    /// The language model, with interleaved multimodal rope.
    pub text: DeltaDecoderConfig,
}

impl Qwen35Config {
    /// Reads Qwen3.5, or Qwen3.5-MoE.
    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let form = match model_type {
            "qwen3_5_moe" => &QWEN3_5_MOE,
            _ => &QWEN3_5,
        };
        let mut text = DeltaDecoderConfig::read(&s.nested_or_empty("text_config", "Qwen3.5 language")?, form)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        let vision = s.nested_or_empty("vision_config", "Qwen3.5 vision")?;
        Ok(Self {
            vision: Qwen3VlVisionConfig::read(&vision, false)?,
            text,
        })
    }
}
