//! Configuration of GPT-2.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};

/// GPT-2: learned positions, fused query-key-value, biases everywhere, head tied to the embedding.
///
/// Source: `transformers/models/gpt2/configuration_gpt2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpt2Config {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Longest sequence (learned positions).
    pub positions: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout after each projection into the residual stream.
    pub residual_dropout: f64,
    /// Dropout after the embeddings.
    pub embedding_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if attention is computed in fp32 under mixed precision.
    pub upcast_attention: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl Gpt2Config {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["n_embd", "hidden_size"], 768, limits::WIDTH)?;
        let heads = s.size_of_either(["n_head", "num_attention_heads"], 12, limits::HEADS)?;
        s.divide(("n_embd", hidden), ("n_head", heads))?;
        if s.flag("add_cross_attention", false)? {
            return Err(s.wrong(
                "add_cross_attention",
                &true.into(),
                "false: attention to an encoder is not simulated",
            ));
        }
        Ok(Self {
            vocab: s.size("vocab_size", 50_257, limits::VOCAB)?,
            positions: s.with_defaults().size_of_either(
                ["n_positions", "max_position_embeddings"],
                1024,
                limits::POSITIONS,
            )?,
            hidden,
            layers: s.size_of_either(["n_layer", "num_hidden_layers"], 12, limits::LAYERS)?,
            heads,
            intermediate: s.size_or("n_inner", 4 * hidden, limits::WIDTH * 4)?,
            activation: s.activation("activation_function", Activation::GeluNew)?,
            residual_dropout: s.probability("resid_pdrop", 0.1)?,
            embedding_dropout: s.probability("embd_pdrop", 0.1)?,
            attention_dropout: s.probability("attn_pdrop", 0.1)?,
            upcast_attention: s.flag("reorder_and_upcast_attn", false)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }
}
