//! Configuration of Gemma 3 with vision, and of ShieldGemma 2.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders::gemma3_text;
use crate::model::libraries::Liger;
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// Gemma 3 with vision: a SigLIP tower, average pooling, a projection, the Gemma 3 decoder; the
/// tokens of one image see each other both ways.
///
/// Source: `transformers/models/gemma3/configuration_gemma3.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma3Config {
    /// The vision tower.
    pub vision: SiglipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Image tokens of one image, after pooling.
    pub image_tokens: u64,
    /// Token id that image features replace.
    pub image_token: u64,
    /// Effect of Liger on the forward of the model's class.
    pub liger: Liger,
}

impl Gemma3Config {
    /// Reads `Gemma3Config` or `ShieldGemma2Config`.
    pub(crate) fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "Gemma 3 language")?;
        text.expect_model_type(&["gemma3_text"])?;
        let mut text = DecoderConfig::read(&text, &gemma3_text::FAMILY)?;
        // `ShieldGemma2Config` takes what its text configuration says where it says nothing itself.
        let is_shield = model_type == "shieldgemma2";
        let tied = !is_shield || text.tie_word_embeddings;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", tied)?;
        Ok(Self {
            vision: SiglipVisionConfig::read(&s.nested("vision_config", "SigLIP vision")?)?,
            text,
            image_tokens: s.size_or("mm_tokens_per_image", 256, limits::POSITIONS)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 262_144)?,
            liger: if is_shield { Liger::Unknown } else { Liger::Replaces },
        })
    }
}
