//! Configuration of the decoders.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::{rope_tables, slides_by_layer};

/// A decoder of ModernBERT's blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct ModernBertDecoderConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Attention heads.
    pub heads: u64,
    /// True for each block that slides.
    pub slides: Vec<bool>,
    /// Positions that sliding blocks see.
    pub window: u64,
    /// Positions that the model was trained for.
    pub max_positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Activation of the head.
    pub head_activation: Activation,
    /// Modules with biases.
    pub biases: Biases,
    /// Dropout of embeddings.
    pub embedding_dropout: f64,
    /// Dropout of attention probabilities, and of what attention gives.
    pub attention_dropout: f64,
    /// Dropout inside the MLP.
    pub mlp_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

/// Modules with biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct Biases {
    /// Norms.
    pub norms: bool,
    /// Projections of attention.
    pub attention: bool,
    /// Projections of the MLP.
    pub mlp: bool,
    /// The linear layer before the output projection.
    pub head: bool,
    /// The output projection.
    pub output: bool,
}

impl ModernBertDecoderConfig {
    /// Reads it.
    pub(super) fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 768, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 12, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let layers = s.size("num_hidden_layers", 22, limits::LAYERS)?;
        let every = s.size_or("global_attn_every_n_layers", 3, limits::LAYERS)?;
        let by_rule = || (0..layers).map(|layer| layer % every != 0).collect();
        if s.has("local_attention") {
            s.required(
                "local_attention",
                "a number: sliding blocks without a window are not simulated",
            )?;
        }
        let local = s.size_or("local_attention", 128, limits::POSITIONS)?;
        if local < 2 {
            let allowed = "a number from 2, of which a block sees half";
            return Err(s.wrong("local_attention", &local.into(), allowed));
        }
        rope_tables::are_static(s)?;
        Ok(Self {
            vocab: s.size("vocab_size", 50_368, limits::VOCAB)?,
            hidden,
            intermediate: s.size("intermediate_size", 1152, limits::WIDTH * 4)?,
            heads,
            slides: slides_by_layer(s, layers)?.unwrap_or_else(by_rule),
            window: local / 2,
            max_positions: s.size_or("max_position_embeddings", 8192, limits::POSITIONS)?,
            activation: s.activation("hidden_activation", Activation::Gelu)?,
            head_activation: s.activation("classifier_activation", Activation::Gelu)?,
            biases: Biases {
                norms: s.flag("norm_bias", false)?,
                attention: s.flag("attention_bias", false)?,
                mlp: s.flag("mlp_bias", false)?,
                head: s.flag("classifier_bias", false)?,
                output: s.flag("decoder_bias", true)?,
            },
            embedding_dropout: s.probability("embedding_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            mlp_dropout: s.probability("mlp_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }
}
