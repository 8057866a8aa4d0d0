//! GPT-NeoX Japanese (`transformers/models/gpt_neox_japanese`).

mod stack;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, Rope, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::rotary_decoder::{read_heads, read_rope};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("gpt_neox_japanese", &["GPTNeoXJapaneseForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// GPT-NeoX Japanese: GPT-NeoX without biases but in the last layer's attention, one part after the other, eager.
#[derive(Debug, Clone, PartialEq)]
pub struct GptNeoxJapaneseConfig {
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
    /// Longest sequence that the model was made for.
    pub max_positions: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Rotary embedding, of whole heads.
    pub rope: Rope,
    /// Dropout after each part.
    pub hidden_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for GptNeoxJapaneseConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        let [hidden, heads, head_dim] = read_heads(s, 2560, 32)?;
        let share = s.optional_number("rotary_pct")?.unwrap_or(1.0);
        let rope = read_rope(s, head_dim, share)?;
        if rope.rotated(head_dim) != head_dim {
            let allowed = "1: its cosines are as wide as a whole head";
            return Err(s.wrong("partial_rotary_factor", &rope.partial_rotary_factor.into(), allowed));
        }
        Ok(Self {
            vocab: s.size("vocab_size", 32_000, limits::VOCAB)?,
            hidden,
            intermediate: hidden * s.size_or("intermediate_multiple_size", 4, limits::COUNT)?,
            layers: s.size("num_hidden_layers", 32, limits::LAYERS)?,
            heads,
            max_positions: s.size_or("max_position_embeddings", 2048, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            rope,
            hidden_dropout: s.probability("hidden_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.1)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: "embed_out",
            ..HeadForm::plain(self.tie_word_embeddings)
        };
        let stack = || stack::JapaneseStack::new(b, self);
        Box::new(TextLm::new(b, "gpt_neox_japanese", head, stack))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
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
