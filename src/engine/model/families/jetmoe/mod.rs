//! JetMoE (`transformers/models/jetmoe`).

mod block;
mod experts;
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
    model_types: &[ModelType::new("jetmoe", &["JetMoeForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// JetMoE: experts in place of MLPs, and experts that make queries and take what attention gives.
#[derive(Debug, Clone, PartialEq)]
pub struct JetMoeConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside an expert of the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Heads of keys and values; each chosen expert makes as many queries.
    pub kv_heads: u64,
    /// Width of a head.
    pub head_dim: u64,
    /// Experts of each kind.
    pub experts: u64,
    /// Experts that each token passes.
    pub chosen: u64,
    /// Positions that the model was trained for.
    pub max_positions: u64,
    /// Activation of the MLP's experts.
    pub activation: Activation,
    /// Rotary positions.
    pub rope: Rope,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for JetMoeConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let vocab = s.size("vocab_size", 32_000, limits::VOCAB)?;
        s.padding(vocab)?;
        s.only(
            "output_router_logits",
            "false: the loss that balances experts is not simulated",
            |v| v.as_bool() == Some(false),
        )?;
        let experts = s.size("num_local_experts", 8, limits::COUNT)?;
        let chosen = s.size("num_experts_per_tok", 2, limits::COUNT)?;
        if chosen > experts {
            return Err(s.wrong("num_experts_per_tok", &chosen.into(), "at most `num_local_experts`"));
        }
        Ok(Self {
            vocab,
            hidden: s.size("hidden_size", 2048, limits::WIDTH)?,
            intermediate: s.size("intermediate_size", 5632, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 12, limits::LAYERS)?,
            kv_heads: s.size("num_key_value_heads", 16, limits::HEADS)?,
            head_dim: s.size("kv_channels", 128, limits::HEAD_DIM)?,
            experts,
            chosen,
            max_positions: s.size_or("max_position_embeddings", 4096, limits::POSITIONS)?,
            activation: s.activation("activation_function", Activation::Silu)?,
            rope: Rope::read(s, 1e4, 1.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let form = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "model", form, || stack::JetMoeStack::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.kv_heads * self.chosen,
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

    /// The class refuses to checkpoint its blocks.
    fn checkpoints(&self) -> bool {
        false
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
