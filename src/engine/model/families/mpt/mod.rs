//! MPT (`transformers/models/mpt`).

mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("mpt", &["MptForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// MPT: layer norms and linear layers without biases, ALiBi in eager attention.
#[derive(Debug, Clone, PartialEq)]
pub struct MptConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Longest sequence, for which the biases of attention are made.
    pub positions: u64,
    /// True if queries, keys and values are clamped.
    pub clips: bool,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for MptConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["d_model", "hidden_size"], 2048, limits::WIDTH)?;
        let heads = s.size_of_either(["n_heads", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("d_model", hidden), ("n_heads", heads))?;
        let attention = s.nested_or_empty("attn_config", "mpt")?;
        let whole = "0: transformers 5.17 takes no share, and attention without its probabilities is not simulated";
        attention.only("attn_pdrop", whole, |v| v.as_u64() == Some(0))?;
        Ok(Self {
            vocab: s.size("vocab_size", 50_368, limits::VOCAB)?,
            hidden,
            layers: s.size_of_either(["n_layers", "num_hidden_layers"], 24, limits::LAYERS)?,
            heads,
            positions: s.size_or("max_seq_len", 2048, limits::POSITIONS)?,
            clips: attention.optional_number("clip_qkv")?.is_some_and(|limit| limit != 0.0),
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "transformer", head, || stack::MptStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
