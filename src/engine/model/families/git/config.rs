//! Configuration of GIT.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::families::blip::BlipTextConfig;
use crate::model::families::blip2::QFormerConfig;
use crate::model::parts::clip_vision::ClipVisionConfig;

/// GIT: CLIP's tower, a projection, and a decoder of BERT's blocks that reads the image before the text.
///
/// Source: `transformers/models/git/configuration_git.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct GitConfig {
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// The text decoder.
    pub text: BlipTextConfig,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl GitConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = ClipVisionConfig::read_with_patch(&s.nested_or_empty("vision_config", "GIT vision")?, 16)?;
        s.only("num_image_with_embedding", "null: videos are not simulated", |_| false)?;
        let vocab = s.size_or("vocab_size", 30_522, limits::VOCAB)?;
        if s.has("pad_token_id") {
            s.padding(vocab)?;
        }
        Ok(Self {
            text: BlipTextConfig {
                blocks: QFormerConfig {
                    shape: EncoderShape::read(s, Self::TEXT)?,
                    cross_attention_frequency: 1,
                    encoder_hidden: vision.hidden,
                    activation: s.activation("hidden_act", Activation::Gelu)?,
                    hidden_dropout: s.probability("hidden_dropout_prob", 0.1)?,
                    attention_dropout: s.probability("attention_probs_dropout_prob", 0.1)?,
                    text_input: false,
                },
                vocab,
                positions: s.size_or("max_position_embeddings", 1024, limits::POSITIONS)?,
            },
            vision,
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
        })
    }

    const TEXT: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 6,
        heads: 12,
    };
}
