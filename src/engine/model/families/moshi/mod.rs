//! Moshi's language model of text (`transformers/models/moshi`).

mod block;
mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("moshi", &["MoshiForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Moshi: a decoder like Llama's whose attention makes its own rotary tables, without what it reads sound by.
#[derive(Debug, Clone, PartialEq)]
pub struct MoshiConfig {
    /// Outputs of the head; the table of tokens has one entry more.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Elements that the first projection of an MLP makes: half are gates.
    pub fused: u64,
    /// Blocks.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Width of a head.
    pub head_dim: u64,
    /// Positions that the model was trained for.
    pub max_positions: u64,
    /// Activation of MLPs.
    pub activation: Activation,
    /// Rotary positions.
    pub rope: Rope,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl TextFamily for MoshiConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let vocab = s.size("vocab_size", 32_000, limits::VOCAB)?;
        s.padding(vocab + 1)?;
        let hidden = s.size("hidden_size", 4096, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 32, limits::HEADS)?;
        let of_head = s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let kv_heads = s.optional_size("num_key_value_heads", limits::HEADS)?.unwrap_or(heads);
        s.divide(("num_attention_heads", heads), ("num_key_value_heads", kv_heads))?;
        let fused = s.size("ffn_dim", 22_528, limits::WIDTH * 8)?;
        s.divide(("ffn_dim", fused), ("both halves", 2))?;
        Ok(Self {
            vocab,
            hidden,
            fused,
            layers: s.size("num_hidden_layers", 32, limits::LAYERS)?,
            heads,
            kv_heads,
            head_dim: s.optional_size("head_dim", limits::HEAD_DIM)?.unwrap_or(of_head),
            max_positions: s.size_or("max_position_embeddings", 3000, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            rope: Rope::read(s, 1e4, 1.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }

    /// The class ties no weights, whatever `tie_word_embeddings` says.
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = (HeadForm::plain(false), self.vocab);
        let stack = || stack::MoshiStack::new(b, self);
        Box::new(TextLm::with_head_of(b, "model", head, stack))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim,
        }
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
