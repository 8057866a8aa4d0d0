//! Configuration of Idefics2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::idefics_vision::IdeficsVisionConfig;

/// Idefics2: a SigLIP-like tower, a gated projection, a perceiver that resamples its patches, any decoder.
///
/// Source: `transformers/models/idefics2/configuration_idefics2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Idefics2Config {
    /// The vision tower.
    pub vision: IdeficsVisionConfig,
    /// The perceiver.
    pub perceiver: PerceiverConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// The perceiver, as wide as the language model.
#[derive(Debug, Clone, PartialEq)]
pub struct PerceiverConfig {
    /// Latent vectors, one for each image token.
    pub latents: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Elements of one head.
    pub head_dim: u64,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl Idefics2Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "mistral")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            vision: IdeficsVisionConfig::idefics2(&s.nested("vision_config", "Idefics2 vision")?)?,
            perceiver: PerceiverConfig::read(&s.nested_or_empty("perceiver_config", "Idefics2 perceiver")?)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 32_001)?,
            text,
        })
    }
}

impl PerceiverConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let heads = s.size_or("resampler_n_heads", 16, limits::HEADS)?;
        let kv_heads = s.size_or("num_key_value_heads", 4, limits::HEADS)?;
        s.divide(("resampler_n_heads", heads), ("num_key_value_heads", kv_heads))?;
        Ok(Self {
            latents: s.size_or("resampler_n_latents", 64, limits::POSITIONS)?,
            layers: s.size_or("resampler_depth", 3, limits::LAYERS)?,
            heads,
            kv_heads,
            head_dim: s.size_or("resampler_head_dim", 96, limits::HEAD_DIM)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }
}
