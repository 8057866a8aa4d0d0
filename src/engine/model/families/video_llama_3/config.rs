//! Configuration of VideoLLaMA 3.

use crate::model::ModelError;
use crate::model::config::EncoderShape;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::packed_vision::PackedVisionConfig;
use crate::model::parts::qwen_vl::{Resize, Widening};

/// VideoLLaMA 3: a tower of SigLIP's blocks with rotary positions, a projector, any decoder.
///
/// Source: `transformers/models/video_llama_3/configuration_video_llama_3.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoLlama3Config {
    /// The vision tower.
    pub vision: PackedVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
}

/// `VideoLlama3VisionConfig`.
const SHAPE: EncoderShape = EncoderShape {
    hidden: 768,
    intermediate: 3072,
    layers: 12,
    heads: 12,
};

/// `VideoLlama3ImageProcessor`.
const RESIZE: Resize = Resize {
    pixels: [56 * 56, 28 * 28 * 1280],
    widening: Widening::Never,
};

impl VideoLlama3Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "qwen2")?;
        text.tie_word_embeddings |= s.flag("tie_word_embeddings", false)?;
        // The processor merges patches of videos, and of no image (`merge_size`).
        let vision = s.nested_or_empty("vision_config", "VideoLLaMA 3 vision")?;
        Ok(Self {
            vision: PackedVisionConfig::read(&vision, SHAPE, 16, (1, RESIZE))?,
            text,
        })
    }
}
