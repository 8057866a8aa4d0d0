//! The first GPT (`transformers/models/openai`).

mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("openai-gpt", &["OpenAIGPTLMHeadModel"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// The first GPT: layer norms after each part, learned positions, and masks of its own in eager attention.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAiGptConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Longest sequence.
    pub positions: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of the embeddings.
    pub embedding_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// Dropout after each part.
    pub residual_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for OpenAiGptConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let hidden = s.size_of_either(["n_embd", "hidden_size"], 768, limits::WIDTH)?;
        let heads = s.size_of_either(["n_head", "num_attention_heads"], 12, limits::HEADS)?;
        s.divide(("n_embd", hidden), ("n_head", heads))?;
        let keys = ["n_positions", "max_position_embeddings"];
        Ok(Self {
            vocab: s.size("vocab_size", 40_478, limits::VOCAB)?,
            positions: s.with_defaults().size_of_either(keys, 512, limits::POSITIONS)?,
            hidden,
            layers: s.size_of_either(["n_layer", "num_hidden_layers"], 12, limits::LAYERS)?,
            heads,
            activation: activation(s)?,
            embedding_dropout: s.probability("embd_pdrop", 0.1)?,
            attention_dropout: s.probability("attn_pdrop", 0.1)?,
            residual_dropout: s.probability("resid_pdrop", 0.1)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "transformer", head, || stack::OpenAiStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            // Its linear layers are `Conv1D`s.
            adapters: AdapterMaps::None,
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

/// Reads the activation by the names of the class, in which "gelu" is GPT-2's.
fn activation(s: &Section) -> Result<Activation, ModelError> {
    let key = "afn";
    Ok(match s.optional_text(key)?.unwrap_or("gelu") {
        "gelu" => Activation::GeluNew,
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        other => return Err(s.wrong(key, &other.into(), "gelu, relu, silu or swish")),
    })
}
