//! BioGPT (`transformers/models/biogpt`).

mod forward;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::bart::{AttentionForm, BlockConfig};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "biogpt",
        classes: &["BioGptForCausalLM"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// BioGPT: learned positions, layer norms before each part, a scaled embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct BioGptConfig {
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Blocks.
    pub layers: u64,
    /// Longest sequence; the position embedding has two more entries.
    pub positions: u64,
    /// Form and sizes of a block.
    pub(crate) block: BlockConfig,
    /// True if the head shares the token embedding's weight.
    pub tie_word_embeddings: bool,
}

impl TextFamily for BioGptConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        s.only("layerdrop", "0: blocks that are left out are not simulated", |p| {
            p.as_f64() == Some(0.0)
        })?;
        let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let vocab = s.size("vocab_size", 42_384, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self {
            vocab,
            layers: s.size("num_hidden_layers", 24, limits::LAYERS)?,
            positions: s.size("max_position_embeddings", 1024, limits::POSITIONS)?,
            block: BlockConfig {
                hidden,
                intermediate: s.size("intermediate_size", 4096, limits::WIDTH * 4)?,
                heads,
                attention: AttentionForm::Interface,
                bias: true,
                norm_before: true,
                has_cross_attention: false,
                nests_activation: false,
                activation: s.activation("hidden_act", Activation::Gelu)?,
                dropout: s.probability("hidden_dropout_prob", 0.1)?,
                attention_dropout: s.probability("attention_probs_dropout_prob", 0.1)?,
                activation_dropout: s.probability("activation_dropout", 0.0)?,
            },
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        })
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: "output_projection",
            bias: false,
            is_tied: self.tie_word_embeddings,
        };
        Box::new(TextLm::new(b, "biogpt", head, || forward::Decoder::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.block.heads, self.block.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: None,
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
