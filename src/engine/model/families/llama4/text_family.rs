//! Llama 4's language model alone.

use super::text::Decoder;
use super::text_config::Llama4TextConfig;
use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("llama4_text", &["Llama4ForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Llama4TextConfig {
    /// Its attention heads.
    pub(super) const fn all_heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim,
        }
    }
}

impl TextFamily for Llama4TextConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        match s.optional_nested("text_config", "Llama 4 language")? {
            Some(text) => Self::read(&text),
            None => Self::read(s),
        }
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm::plain(self.tie_word_embeddings);
        Box::new(TextLm::new(b, "model", head, || Decoder::new(b, self)))
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        self.all_heads()
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::BesideOtherExperts,
            liger: Liger::NotSimulated,
            no_flash: Some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
