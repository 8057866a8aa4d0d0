//! Form and sizes of the decoders.

use super::stack::GptStack;
use crate::model::config::Activation;
use crate::model::forward::Forward;
use crate::model::parts::text::{HeadForm, MlpForm, TextLm};
use crate::nn::Builder;

/// Form of a family's decoder.
#[derive(Debug, PartialEq)]
pub(crate) struct GptForm {
    /// True if positions are learned, in `wpe`.
    pub learns_positions: bool,
    /// Form of the MLP.
    pub mlp: MlpForm,
    /// True if attention and the MLP run side by side after one norm.
    pub parallel: bool,
    /// Head.
    pub head_bias: bool,
}

/// Attention of a decoder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttentionForm {
    /// One projection of queries, keys and values, behind transformers' interface (GPTBigCode).
    Fused {
        /// True if all query heads share one head of keys and values.
        multi_query: bool,
    },
    /// Eager attention whose blocks mask by tables of their own (GPT-Neo).
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
pub(crate) struct Dropouts {
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
    /// Form of the family.
    pub(crate) form: &'static GptForm,
    /// Attention.
    pub(crate) attention: AttentionForm,
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
    pub(crate) dropouts: Dropouts,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl GptConfig {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: "lm_head",
            bias: self.form.head_bias,
            is_tied: self.tie_word_embeddings,
        };
        Box::new(TextLm::new(b, "transformer", head, || GptStack::new(b, self)))
    }
}
