//! Configuration of PaliGemma 1 and 2.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// PaliGemma 1 and 2: a SigLIP tower, one linear projection, Gemma or Gemma 2; the positions of the prefix of image and
/// prompt see each other both ways.
///
/// Source: `transformers/models/paligemma/configuration_paligemma.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct PaliGemmaConfig {
    /// The vision tower.
    pub vision: SiglipVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Width of the projection's output.
    pub projection: u64,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl PaliGemmaConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "gemma")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        Ok(Self {
            vision: SiglipVisionConfig::read(&s.nested("vision_config", "SigLIP vision")?)?,
            text,
            projection: s.size_or("projection_dim", 2048, limits::WIDTH)?,
            image_token: s.index_of_either(["image_token_index", "image_token_id"], 256_000)?,
        })
    }
}
