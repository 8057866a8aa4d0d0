//! Attention and sizes of the decoders.

use crate::model::config::Activation;

/// Attention of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub enum AttentionForm {
    /// One projection of queries, keys and values, behind transformers' interface (GPTBigCode).
    Fused {
        /// True if all query heads share one head of keys and values.
        multi_query: bool,
    },
    /// Eager attention, each block of which has a causal mask of its own, the buffer `bias` (GPT-Neo).
    Tables {
        /// For each block, true if it sees a window only.
        local: Vec<bool>,
    },
    /// Eager attention in fp32 over heads that are rotated in pairs of elements (GPT-J and CodeGen).
    Pairs {
        /// Elements of a head that are rotated.
        rotated: u64,
        /// True if one projection makes queries, values and keys, and positions stay in fp32 (CodeGen).
        fused: bool,
    },
}

/// Probabilities of dropout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropouts {
    /// After the embeddings.
    pub embedding: f64,
    /// Of attention probabilities.
    pub attention: f64,
    /// After each projection into the residual stream.
    pub residual: f64,
}

/// A decoder like GPT-2's.
#[derive(Debug, Clone, PartialEq)]
pub struct GptConfig {
    /// Attention.
    pub attention: AttentionForm,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Longest sequence.
    pub positions: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Probabilities of dropout.
    pub dropouts: Dropouts,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl GptConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    /// True for GPT-J and CodeGen: attention and the MLP run side by side after one norm, positions are rotated and not
    /// learned, and the head has a bias.
    pub(super) fn is_parallel(&self) -> bool {
        matches!(self.attention, AttentionForm::Pairs { .. })
    }

    /// True if transformers has no SDPA for the model, and takes eager attention unless told otherwise.
    pub(super) fn is_eager(&self) -> bool {
        !matches!(self.attention, AttentionForm::Fused { .. })
    }
}
