//! CPM-Ant (`transformers/models/cpmant`).

mod block;
mod inputs;
mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::{self, Builder};

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("cpmant", &["CpmAntForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// CPM-Ant: RMS norms, gated MLPs, learned biases of distances in eager attention, a learned prompt before each sample.
#[derive(Debug, Clone, PartialEq)]
pub struct CpmAntConfig {
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
    /// Width of a head.
    pub head_dim: u64,
    /// Dropout; null keeps no module for it, which is the same.
    pub dropout: f64,
    /// Kinds of distances that biases tell apart.
    pub buckets: u64,
    /// Longest distance that biases tell apart.
    pub distance: u64,
    /// Prompts that are learned.
    pub prompts: u64,
    /// Tokens of a prompt.
    pub prompt: u64,
    /// Segments that are embedded.
    pub segments: u64,
}

impl TextFamily for CpmAntConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            vocab: s.size("vocab_size", 30_720, limits::VOCAB)?,
            hidden: s.size("hidden_size", 4096, limits::WIDTH)?,
            intermediate: s.size("dim_ff", 10_240, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 48, limits::LAYERS)?,
            heads: s.size("num_attention_heads", 32, limits::HEADS)?,
            head_dim: s.size("dim_head", 128, limits::HEAD_DIM)?,
            dropout: s.probability("dropout_p", 0.0)?,
            buckets: s.size_or("position_bias_num_buckets", 512, limits::VOCAB)?,
            distance: s.size_or("position_bias_max_distance", 2048, limits::POSITIONS)?,
            prompts: s.size_or("prompt_types", 32, limits::VOCAB)?,
            prompt: s.size_or("prompt_length", 32, limits::POSITIONS)?,
            segments: s.size_or("segment_types", 32, limits::VOCAB)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        // The head is a part of the table of tokens, and shares nothing with it.
        let form = HeadForm::plain(false);
        let lm = TextLm::with_head_of(b, "cpmant", (form, self.vocab), || stack::CpmAntStack::new(b, self));
        Box::new(lm.with_loss(nn::unshifted_lm_loss))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.distance)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.heads,
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
