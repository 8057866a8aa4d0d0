//! Configuration of EXAONE 4.5.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders::exaone4;
use crate::model::families::qwen2_5_vl::Qwen25VlVisionConfig;

/// EXAONE 4.5: Qwen2.5-VL's tower with shared heads of keys and values, and EXAONE 4.
///
/// Source: `transformers/models/exaone4_5/configuration_exaone4_5.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Exaone45Config {
    /// The vision tower.
    pub vision: Qwen25VlVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
}

impl Exaone45Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "EXAONE 4")?;
        text.expect_model_type(&["exaone4", "exaone4_5_text"])?;
        let mut text = DecoderConfig::read(&text, &exaone4::FAMILY)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: Qwen25VlVisionConfig::read_grouped(&s.nested("vision_config", "EXAONE 4.5 vision")?)?,
            text,
        })
    }
}
