//! BioGPT (`transformers/models/biogpt`).

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::parts::bart::{BartConfig, BartForm};
use crate::model::parts::text::{TextFamily, TextSupport};
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

static FORM: BartForm = BartForm {
    path: "biogpt",
    head: "output_projection",
    is_xglm: false,
};

/// BioGPT: learned positions, layer norms before each part, a scaled embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct BioGptConfig(pub BartConfig);

impl TextFamily for BioGptConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        BartConfig::supported(s)?;
        let hidden = s.size("hidden_size", 1024, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let vocab = s.size("vocab_size", 42_384, limits::VOCAB)?;
        s.padding(vocab)?;
        Ok(Self(BartConfig {
            form: &FORM,
            vocab,
            hidden,
            intermediate: s.size("intermediate_size", 4096, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", 24, limits::LAYERS)?,
            heads,
            positions: s.size("max_position_embeddings", 1024, limits::POSITIONS)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            dropout: s.probability("hidden_dropout_prob", 0.1)?,
            attention_dropout: s.probability("attention_probs_dropout_prob", 0.1)?,
            activation_dropout: s.probability("activation_dropout", 0.0)?,
            tie_word_embeddings: s.flag("tie_word_embeddings", true)?,
        }))
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        self.0.build(b)
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.0.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.0.heads, self.0.hidden)
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
