//! RecurrentGemma (`transformers/models/recurrent_gemma`).

mod attention;
mod block;
mod config;
mod recurrent;
mod stack;

pub use config::RecurrentGemmaConfig;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{TextFamily, TextLm, TextSupport};
use crate::nn::Builder;
use crate::tape::Component;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("recurrent_gemma", &["RecurrentGemmaForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl TextFamily for RecurrentGemmaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read_of(s)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let path = "model";
        let make = || stack::RecurrentStack::new(b, self);
        let stack = b.tape().component(path, Component::LanguageModel, make);
        let head = stack::CappedHead::new(b, &stack, self);
        Box::new(TextLm::of(path, stack, Box::new(head)))
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
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
