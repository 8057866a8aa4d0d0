//! Configuration of RecurrentGemma.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, RopeKind, limits};

/// RecurrentGemma: blocks with a linear recurrence, or with attention within a window, each before a gated MLP.
///
/// Source: `transformers/models/recurrent_gemma/configuration_recurrent_gemma.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct RecurrentGemmaConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside an MLP, half of what the file states.
    pub intermediate: u64,
    /// Width of the recurrence.
    pub lru: u64,
    /// For each block, true if it has attention.
    pub has_attention: Vec<bool>,
    /// Heads of queries, and blocks of the recurrence's gates.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Width of a head.
    pub head_dim: u64,
    /// Positions that attention sees.
    pub window: u64,
    /// Positions that the convolution before a recurrence sees.
    pub kernel: u64,
    /// Activation of MLPs, and beside a recurrence.
    pub activation: Activation,
    /// Rotary positions.
    pub rope: Rope,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if queries, keys and values have biases.
    pub attention_bias: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl RecurrentGemmaConfig {
    pub(super) fn read_of(s: &Section) -> Result<Self, ModelError> {
        let vocab = s.size("vocab_size", 256_000, limits::VOCAB)?;
        s.padding(vocab)?;
        let hidden = s.size("hidden_size", 2560, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 10, limits::HEADS)?;
        let kv_heads = s.optional_size("num_key_value_heads", limits::HEADS)?.unwrap_or(heads);
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let lru = s.optional_size("lru_width", limits::WIDTH)?.unwrap_or(hidden);
        s.divide(("lru_width", lru), ("num_attention_heads", heads))?;
        // The class computes it, and what the file states then takes its place (`__post_init__`).
        let head_dim = s.optional_size("head_dim", limits::HEAD_DIM)?.unwrap_or(hidden / heads);
        let rope = Rope::read(s, 1e4, 0.5)?;
        if rope.kind != RopeKind::Default {
            let given = s.value("rope_parameters").or(s.value("rope_scaling")).cloned();
            return Err(s.wrong("rope_parameters", &given.unwrap_or_default(), "of the kind \"default\""));
        }
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 7680, limits::WIDTH * 4)? / 2,
            lru,
            has_attention: blocks(s)?,
            heads,
            kv_heads,
            head_dim,
            window: s.size_or("attention_window_size", 2048, limits::POSITIONS)?,
            kernel: s.size_or("conv1d_width", 4, limits::COUNT)?,
            activation: s.activation("hidden_activation", Activation::GeluTanh)?,
            rope,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            attention_bias: s.flag("attention_bias", false)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }
}

/// Blocks that have attention: those of `block_types`, which repeats.
fn blocks(s: &Section) -> Result<Vec<bool>, ModelError> {
    let layers = s.size("num_hidden_layers", 26, limits::LAYERS)? as usize;
    let Some(given) = s.value("block_types") else {
        return Ok((0..layers).map(|layer| layer % 3 == 2).collect());
    };
    let wrong = || s.wrong("block_types", given, "a list of \"recurrent\" and \"attention\"");
    let one = |kind: &serde_json::Value| match kind.as_str() {
        Some("recurrent") => Ok(false),
        Some("attention") => Ok(true),
        _ => Err(wrong()),
    };
    let kinds = given.as_array().ok_or_else(wrong)?.iter().map(one);
    let kinds = kinds.collect::<Result<Vec<bool>, ModelError>>()?;
    // The class repeats the list a hundred times.
    if kinds.len().saturating_mul(100) < layers {
        return Err(wrong());
    }
    Ok(kinds.into_iter().cycle().take(layers).collect())
}
