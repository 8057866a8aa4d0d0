//! Configuration of KOSMOS-2.

use serde_json::Value;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::parts::clip_vision::ClipVisionConfig;

/// KOSMOS-2: CLIP's tower, latent queries that attend to its patches, a decoder with positions of sines and cosines.
///
/// Source: `transformers/models/kosmos2/configuration_kosmos2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kosmos2Config {
    /// The vision tower.
    pub vision: ClipVisionConfig,
    /// The language model.
    pub text: KosmosTextConfig,
    /// Latent queries, one for each image token.
    pub latents: u64,
}

/// KOSMOS's decoder.
#[derive(Debug, Clone, PartialEq)]
pub struct KosmosTextConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// `max_position_embeddings`; the table of positions has two more entries.
    pub positions: u64,
    /// Token of padding, after which positions are counted.
    pub padding: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout inside the MLP.
    pub activation_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl Kosmos2Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = KosmosTextConfig::read(&s.nested("text_config", "KOSMOS-2 text")?)?;
        same_ties(s, &text)?;
        Ok(Self {
            vision: vision(&s.nested("vision_config", "KOSMOS-2 vision")?)?,
            text,
            latents: s.size_or("latent_query_num", 64, limits::COUNT)?,
        })
    }
}

/// Refuses a head that is tied in one of the configurations only.
fn same_ties(s: &Section, text: &KosmosTextConfig) -> Result<(), ModelError> {
    let key = "tie_word_embeddings";
    match s.flag(key, true)? {
        tied if tied == text.tie_word_embeddings => Ok(()),
        tied => Err(s.wrong(
            key,
            &Value::Bool(tied),
            "the value of `text_config.tie_word_embeddings`",
        )),
    }
}

/// Reads CLIP's tower with KOSMOS-2's defaults.
fn vision(s: &Section) -> Result<ClipVisionConfig, ModelError> {
    let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
    let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
    s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
    let image = s.side("image_size", 224, limits::PIXELS)?;
    Ok(ClipVisionConfig {
        hidden,
        intermediate: s.size("intermediate_size", 4096, limits::WIDTH * 4)?,
        layers: s.size("num_hidden_layers", 24, limits::LAYERS)?,
        heads,
        channels: s.size_or("num_channels", 3, limits::COUNT)?,
        image,
        patch: s.side("patch_size", 14, image)?,
        activation: s.activation("hidden_act", Activation::QuickGelu)?,
        attention_dropout: s.probability("attention_dropout", 0.0)?,
        projection: 0,
    })
}

impl KosmosTextConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        s.only("layerdrop", "0: blocks that are left out are not simulated", |p| {
            p.as_f64() == Some(0.0)
        })?;
        s.only(
            "add_cross_attention",
            "false: attention to an encoder is not simulated",
            |v| v == false,
        )?;
        let hidden = s.size_of_either(["embed_dim", "hidden_size"], 2048, limits::WIDTH)?;
        let heads = s.size_of_either(["attention_heads", "num_attention_heads"], 32, limits::HEADS)?;
        s.divide(("embed_dim", hidden), ("attention_heads", heads))?;
        if !hidden.is_multiple_of(2) {
            return Err(s.wrong("embed_dim", &hidden.into(), "an even width"));
        }
        let vocab = s.size("vocab_size", 65_037, limits::VOCAB)?;
        let positions = s.size("max_position_embeddings", 2048, limits::POSITIONS)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("ffn_dim", 8192, limits::WIDTH * 4)?,
            layers: s.size_of_either(["layers", "num_hidden_layers"], 24, limits::LAYERS)?,
            heads,
            positions,
            padding: padding(s, vocab.min(positions))?,
            activation: s.activation("activation_function", Activation::Gelu)?,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", 0.1)?,
            activation_dropout: s.probability("activation_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    /// Longest sequence whose positions are in the table.
    pub(super) fn longest(&self) -> u64 {
        self.positions + 1 - self.padding
    }
}

/// Reads the token of padding, which counts positions and so must be one of the first `limit`.
fn padding(s: &Section, limit: u64) -> Result<u64, ModelError> {
    let key = "pad_token_id";
    if s.has(key) {
        s.required(key, "a token, after which positions are counted")?;
    }
    Ok(s.optional_count(key, limit.saturating_sub(1))?.unwrap_or(1))
}
