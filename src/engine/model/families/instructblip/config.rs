//! Configuration of InstructBLIP and InstructBLIP-Video.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::families::blip2::{Blip2VisionConfig, QFormerConfig};
use crate::model::families::opt::OptConfig;

/// InstructBLIP: BLIP-2 whose querying transformer reads the text too.
///
/// Source: `transformers/models/instructblip/configuration_instructblip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructBlipConfig {
    /// The vision tower.
    pub vision: Blip2VisionConfig,
    /// Blocks of the querying transformer.
    pub qformer: QFormerConfig,
    /// Rows of the querying transformer's token embedding.
    pub qformer_vocab: u64,
    /// Rows of its position embedding.
    pub qformer_positions: u64,
    /// The language model.
    pub text: OptConfig,
    /// Learned queries: image tokens of one image, or of one frame.
    pub queries: u64,
    /// Frames of a sample's video; `None` for a model of images.
    pub frames: Option<u64>,
}

impl InstructBlipConfig {
    /// Frames for which the processor of InstructBLIP-Video writes placeholders.
    const FRAMES: u64 = 4;

    pub(crate) fn read(s: &Section, is_video: bool) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "OPT")?;
        text.expect_model_type(&["opt"])?;
        let vision = Blip2VisionConfig::read(&s.nested_or_empty("vision_config", "InstructBLIP vision")?)?;
        let qformer = s.nested_or_empty("qformer_config", "Q-Former")?;
        Ok(Self {
            qformer: QFormerConfig {
                text_input: true,
                ..QFormerConfig::read(&qformer, vision.shape.hidden)?
            },
            qformer_vocab: qformer.size_or("vocab_size", 30_522, limits::VOCAB)?,
            qformer_positions: qformer.size_or("max_position_embeddings", 512, limits::POSITIONS)?,
            vision,
            text: OptConfig::read(&text)?,
            queries: s.size_or("num_query_tokens", 32, limits::COUNT)?,
            frames: is_video.then_some(Self::FRAMES),
        })
    }

    /// Positions of the language model that a sample's image or video takes.
    pub fn image_tokens(&self) -> u64 {
        self.queries * self.frames.unwrap_or(1)
    }
}
