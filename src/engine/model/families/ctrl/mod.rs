//! CTRL (`transformers/models/ctrl`).

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
    model_types: &[ModelType::new("ctrl", &["CTRLLMHeadModel"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// CTRL: layer norms, positions that are sines and cosines, and a ReLU in the MLP.
#[derive(Debug, Clone, PartialEq)]
pub struct CtrlConfig {
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
    /// Dropout of the embeddings.
    pub embedding_dropout: f64,
    /// Dropout after each part.
    pub residual_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for CtrlConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["n_embd", "hidden_size"], 1280, limits::WIDTH)?;
        let heads = s.size_of_either(["n_head", "num_attention_heads"], 16, limits::HEADS)?;
        s.divide(("n_embd", hidden), ("n_head", heads))?;
        s.divide(("n_embd", hidden), ("sines and cosines", 2))?;
        let keys = ["n_positions", "max_position_embeddings"];
        Ok(Self {
            vocab: s.size("vocab_size", 246_534, limits::VOCAB)?,
            positions: s.with_defaults().size_of_either(keys, 256, limits::POSITIONS)?,
            hidden,
            intermediate: s.size("dff", 8192, limits::WIDTH * 4)?,
            layers: s.size_of_either(["n_layer", "num_hidden_layers"], 48, limits::LAYERS)?,
            heads,
            embedding_dropout: s.probability("embd_pdrop", 0.1)?,
            residual_dropout: s.probability("resid_pdrop", 0.1)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            bias: true,
            ..HeadForm::plain(self.tie_word_embeddings)
        };
        Box::new(TextLm::new(b, "transformer", head, || stack::CtrlStack::new(b, self)))
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

    fn checkpoints(&self) -> bool {
        false
    }
}
