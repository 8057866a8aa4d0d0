//! Configuration of DeepSeek-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// DeepSeek-VL: a SigLIP tower, two linear layers, any decoder.
///
/// Source: `transformers/models/deepseek_vl/configuration_deepseek_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeepseekVlConfig {
    /// The vision tower.
    pub vision: SiglipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl DeepseekVlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        Ok(Self {
            vision: SiglipVisionConfig::read(&s.nested("vision_config", "SigLIP vision")?)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 100_015)?,
            text,
        })
    }
}
