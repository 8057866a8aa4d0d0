//! Form and sizes of the decoders.

use super::stack::BartStack;
use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;
use crate::model::forward::Forward;
use crate::model::parts::text::{HeadForm, TextLm};
use crate::nn::Builder;

/// Form of a family's decoder.
#[derive(Debug, PartialEq)]
pub(crate) struct BartForm {
    /// Name of the decoder within the model.
    pub path: &'static str,
    /// Name of the head.
    pub head: &'static str,
    /// True if positions are sines and cosines, and attention is the family's own (XGLM); else positions are learned,
    /// and attention is behind transformers' interface (BioGPT).
    pub is_xglm: bool,
}

/// A decoder like BART's.
#[derive(Debug, Clone, PartialEq)]
pub struct BartConfig {
    /// Form of the family.
    pub(crate) form: &'static BartForm,
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

impl BartConfig {
    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: self.form.head,
            bias: false,
            is_tied: self.tie_word_embeddings,
        };
        Box::new(TextLm::new(b, self.form.path, head, || BartStack::new(b, self)))
    }

    /// Refuses blocks that are left out at random.
    pub(crate) fn supported(s: &Section) -> Result<(), ModelError> {
        match s.probability("layerdrop", 0.0)? {
            0.0 => Ok(()),
            given => Err(s.wrong(
                "layerdrop",
                &given.into(),
                "0: blocks that are left out are not simulated",
            )),
        }
    }
}
