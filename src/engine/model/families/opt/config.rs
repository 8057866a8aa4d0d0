//! Configuration of OPT.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// OPT: learned positions, layer norms, biases everywhere, head tied to the embedding.
///
/// Source: `transformers/models/opt/configuration_opt.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct OptConfig {
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
    /// Longest sequence; the position embedding has two more entries.
    pub positions: u64,
    /// Width of the token embedding; projected in and out if it differs from `hidden`.
    pub embedding: u64,
    /// True if norms come before each part, false if after.
    pub norm_before: bool,
    /// True if a norm closes the stack.
    pub final_norm: bool,
    /// True if linear layers have biases.
    pub bias: bool,
    /// True if norms have weights.
    pub norm_affine: bool,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of hidden states.
    pub dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl OptConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", 768, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 12, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let vocab = s.size("vocab_size", 50_272, limits::VOCAB)?;
        s.padding(vocab)?;
        let norm_before = s.flag("do_layer_norm_before", true)?;
        Ok(Self {
            vocab,
            hidden,
            intermediate: s.size("ffn_dim", 3072, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 12, limits::LAYERS)?,
            heads,
            positions: s.size("max_position_embeddings", 2048, limits::POSITIONS)?,
            embedding: s.size_or("word_embed_proj_dim", hidden, limits::WIDTH)?,
            norm_before,
            final_norm: norm_before && !s.flag("_remove_final_layer_norm", false)?,
            bias: s.flag("enable_bias", true)?,
            norm_affine: s.flag("layer_norm_elementwise_affine", true)?,
            activation: s.activation("activation_function", Activation::Relu)?,
            dropout: s.probability("dropout", 0.1)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }
}
