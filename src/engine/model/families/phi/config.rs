//! Configuration of Phi-1 to Phi-2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};

/// Phi-1 to Phi-2: attention and MLP in parallel after one layer norm, biases everywhere, rotary
/// positions on a part of each head.
///
/// Source: `transformers/models/phi/configuration_phi.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct PhiConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Rotary embedding.
    pub rope: Rope,
    /// True if queries and keys pass a layer norm of one head's elements.
    pub qk_norm: bool,
    /// Dropout after each projection into the residual stream.
    pub residual_dropout: f64,
    /// Dropout after the embedding.
    pub embedding_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl PhiConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 2048, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 32, limits::HEADS)?;
        let head_dim = s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        if let Some(given) = s.optional_size("head_dim", limits::HEAD_DIM)? {
            s.equal(("head_dim", given), ("hidden_size ÷ num_attention_heads", head_dim))?;
        }
        let vocab = s.size("vocab_size", 51_200, limits::VOCAB)?;
        s.padding(vocab)?;
        let kv_heads = s.size_or("num_key_value_heads", heads, limits::HEADS)?;
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 8192, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 24, limits::LAYERS)?,
            heads,
            kv_heads,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::GeluNew)?,
            rope: Rope::read(s, 10_000.0, 0.5)?,
            qk_norm: s.flag("qk_layernorm", false)?,
            residual_dropout: s.probability("resid_pdrop", 0.0)?,
            embedding_dropout: s.probability("embd_pdrop", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", false)?,
        })
    }
}
