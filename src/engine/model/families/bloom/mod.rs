//! BLOOM (`transformers/models/bloom`).

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
    model_types: &[ModelType::new("bloom", &["BloomForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Positions that BLOOM was trained for; its forward takes any.
const TRAINED_POSITIONS: u64 = 2048;

/// BLOOM: layer norms, ALiBi in eager attention, a GELU whose backward is written out.
#[derive(Debug, Clone, PartialEq)]
pub struct BloomConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// True if norms' outputs are what attention and the MLP add to.
    pub adds_to_normed: bool,
    /// Dropout after each projection into the residual stream.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for BloomConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["n_embed", "hidden_size"], 64, limits::WIDTH)?;
        let heads = s.size_of_either(["n_head", "num_attention_heads"], 8, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("n_head", heads))?;
        if s.optional_number("pretraining_tp")?.is_some_and(|n| n > 1.0) {
            let allowed = "false beside `pretraining_tp` above 1: products in slices are not simulated";
            s.only("slow_but_exact", allowed, |v| v == false)?;
        }
        Ok(Self {
            vocab: s.size("vocab_size", 250_880, limits::VOCAB)?,
            hidden,
            layers: s.size_of_either(["n_layer", "num_hidden_layers"], 2, limits::LAYERS)?,
            heads,
            adds_to_normed: s.flag("apply_residual_connection_post_layernorm", false)?,
            hidden_dropout: s.probability("hidden_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "transformer", head, || stack::BloomStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(TRAINED_POSITIONS)
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
