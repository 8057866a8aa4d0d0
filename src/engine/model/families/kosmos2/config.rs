//! Configuration of KOSMOS-2 and KOSMOS-2.5.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, limits};
use crate::model::parts::clip_vision::ClipVisionConfig;

/// KOSMOS-2 and KOSMOS-2.5: a tower, latent queries that attend to its patches, a decoder with sinusoidal
/// positions.
///
/// Source: `transformers/models/{kosmos2,kosmos2_5}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kosmos2Config {
    /// The vision tower.
    pub vision: VisionConfig,
    /// The language model.
    pub text: KosmosTextConfig,
    /// Latent queries, one for each image token.
    pub latents: u64,
}

/// The vision tower.
#[derive(Debug, Clone, PartialEq)]
pub enum VisionConfig {
    /// CLIP's, over images (KOSMOS-2).
    Clip(ClipVisionConfig),
    /// KOSMOS-2.5's, over flattened patches.
    Patches(Kosmos25VisionConfig),
}

/// KOSMOS-2.5's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Kosmos25VisionConfig {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Elements of one head.
    pub head_dim: u64,
    /// Elements of a patch.
    pub patch: u64,
    /// Patches of an image, to which the processor pads.
    pub patches: u64,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
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
    /// True for KOSMOS-2.5.
    pub is_kosmos2_5: bool,
}

impl Kosmos2Config {
    pub(crate) fn read(s: &Section, is_kosmos2_5: bool) -> Result<Self, ModelError> {
        let d = if is_kosmos2_5 { &KOSMOS2_5 } else { &KOSMOS2 };
        let text = KosmosTextConfig::read(&s.nested("text_config", d.text)?, d, is_kosmos2_5)?;
        s.same_tie(true, text.tie_word_embeddings)?;
        let vision = s.nested("vision_config", d.vision)?;
        Ok(Self {
            vision: match is_kosmos2_5 {
                true => VisionConfig::Patches(patches(&vision)?),
                false => VisionConfig::Clip(clip(&vision)?),
            },
            text,
            latents: s.size_or("latent_query_num", d.latents, limits::COUNT)?,
        })
    }
}

/// Values for absent keys, and names for messages.
struct Defaults {
    text: &'static str,
    vision: &'static str,
    latents: u64,
    vocab: u64,
    hidden: u64,
    intermediate: u64,
    heads: u64,
    positions: u64,
    attention_dropout: f64,
}

const KOSMOS2: Defaults = Defaults {
    text: "KOSMOS-2 text",
    vision: "KOSMOS-2 vision",
    latents: 64,
    vocab: 65_037,
    hidden: 2048,
    intermediate: 8192,
    heads: 32,
    positions: 2048,
    attention_dropout: 0.1,
};

const KOSMOS2_5: Defaults = Defaults {
    text: "KOSMOS-2.5 text",
    vision: "KOSMOS-2.5 vision",
    latents: 2048,
    vocab: 108_481,
    hidden: 1536,
    intermediate: 6144,
    heads: 16,
    positions: 4096,
    attention_dropout: 0.0,
};

/// Reads CLIP's tower with KOSMOS-2's defaults.
fn clip(s: &Section) -> Result<ClipVisionConfig, ModelError> {
    let default = EncoderShape {
        hidden: 1024,
        intermediate: 4096,
        layers: 24,
        heads: 16,
    };
    ClipVisionConfig::read_without_projection(s, default, 14)
}

/// Reads KOSMOS-2.5's tower.
fn patches(s: &Section) -> Result<Kosmos25VisionConfig, ModelError> {
    Ok(Kosmos25VisionConfig {
        hidden: s.size("hidden_size", 1536, limits::WIDTH)?,
        intermediate: s.size("intermediate_size", 3968, limits::WIDTH * 4)?,
        layers: s.size("num_hidden_layers", 18, limits::LAYERS)?,
        heads: s.size("num_attention_heads", 24, limits::HEADS)?,
        head_dim: s.size_or("head_dim", 64, limits::HEAD_DIM)?,
        patch: s.size_or("patch_embed_hidden_size", 768, limits::WIDTH)?,
        patches: s.size_or("max_num_patches", 4096, limits::COUNT)?,
        activation: s.activation("dense_act_fn", Activation::GeluNew)?,
        dropout: s.probability("dropout_rate", 0.0)?,
        attention_dropout: s.probability("attention_dropout", 0.0)?,
    })
}

impl KosmosTextConfig {
    fn read(s: &Section, d: &Defaults, is_kosmos2_5: bool) -> Result<Self, ModelError> {
        s.only("layerdrop", "0: blocks that are left out are not simulated", |p| {
            p.as_f64() == Some(0.0)
        })?;
        s.only(
            "add_cross_attention",
            "false: attention to an encoder is not simulated",
            |v| v == false,
        )?;
        let hidden = s.size_of_either(["embed_dim", "hidden_size"], d.hidden, limits::WIDTH)?;
        let heads = s.size_of_either(["attention_heads", "num_attention_heads"], d.heads, limits::HEADS)?;
        s.divide(("embed_dim", hidden), ("attention_heads", heads))?;
        if !hidden.is_multiple_of(2) {
            return Err(s.wrong("embed_dim", &hidden.into(), "an even width"));
        }
        let vocab = s.size("vocab_size", d.vocab, limits::VOCAB)?;
        let positions = s.size("max_position_embeddings", d.positions, limits::POSITIONS)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("ffn_dim", d.intermediate, limits::WIDTH * 4)?,
            layers: s.size_of_either(["layers", "num_hidden_layers"], 24, limits::LAYERS)?,
            heads,
            positions,
            padding: padding(s, vocab.min(positions))?,
            activation: s.activation("activation_function", Activation::Gelu)?,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", d.attention_dropout)?,
            activation_dropout: s.probability("activation_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
            is_kosmos2_5,
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
