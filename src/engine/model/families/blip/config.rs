//! Configuration of BLIP.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::families::blip2::{Blip2VisionConfig, QFormerConfig};

/// BLIP for captions: a ViT, and a decoder of BERT's blocks with cross-attention to the image.
///
/// Source: `transformers/models/blip/configuration_blip.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct BlipConfig {
    /// The vision tower.
    pub vision: Blip2VisionConfig,
    /// The text decoder.
    pub text: BlipTextConfig,
}

/// A decoder of BERT's blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct BlipTextConfig {
    /// Its blocks.
    pub blocks: QFormerConfig,
    /// Rows of the token embedding.
    pub vocab: u64,
    /// Rows of the position embedding.
    pub positions: u64,
}

impl BlipConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = Blip2VisionConfig::read_blip(&s.nested_or_empty("vision_config", "BLIP vision")?)?;
        let text = s.nested_or_empty("text_config", "BLIP text")?;
        for part in [s, &text] {
            if !part.flag("tie_word_embeddings", true)? {
                return Err(part.wrong("tie_word_embeddings", &false.into(), "true: others are not simulated"));
            }
        }
        if !text.flag("is_decoder", true)? {
            return Err(text.wrong("is_decoder", &false.into(), "true: the text decoder reads the image"));
        }
        if text.probability("label_smoothing", 0.0)? != 0.0 {
            let given = text.value("label_smoothing").cloned().unwrap_or_default();
            return Err(text.wrong("label_smoothing", &given, "0: others are not simulated"));
        }
        let vocab = text.size_or("vocab_size", 30_524, limits::VOCAB)?;
        if text.has("pad_token_id") {
            text.padding(vocab)?;
        }
        Ok(Self {
            text: BlipTextConfig {
                blocks: QFormerConfig {
                    shape: EncoderShape::read(&text, Self::TEXT)?,
                    cross_attention_frequency: 1,
                    encoder_hidden: vision.shape.hidden,
                    activation: text.activation("hidden_act", Activation::Gelu)?,
                    hidden_dropout: text.probability("hidden_dropout_prob", 0.0)?,
                    attention_dropout: text.probability("attention_probs_dropout_prob", 0.0)?,
                    text_input: false,
                },
                vocab,
                positions: text.size_or("max_position_embeddings", 512, limits::POSITIONS)?,
            },
            vision,
        })
    }

    const TEXT: EncoderShape = EncoderShape {
        hidden: 768,
        intermediate: 3072,
        layers: 12,
        heads: 8,
    };
}
