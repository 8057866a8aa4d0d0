//! Decoders like GPT-2's, with linear layers: GPTBigCode, GPT-Neo, GPT-J and CodeGen.

mod attention;
mod config;
mod gpt_bigcode;
mod gpt_neo;
mod gptj;
mod pairs;
mod stack;
mod window;

pub use config::GptConfig;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("gpt_bigcode", &["GPTBigCodeForCausalLM"]),
        ModelType::new("gpt_neo", &["GPTNeoForCausalLM"]),
        ModelType::new("gptj", &["GPTJForCausalLM"]),
        ModelType::new("codegen", &["CodeGenForCausalLM"]),
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl TextFamily for GptConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            "gpt_bigcode" => gpt_bigcode::read(s),
            "gpt_neo" => gpt_neo::read(s),
            _ => gptj::read(model_type, s),
        }
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: "lm_head",
            bias: self.is_parallel(),
            is_tied: self.tie_word_embeddings,
        };
        Box::new(TextLm::new(b, "transformer", head, || stack::GptStack::new(b, self)))
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
            no_flash: self.is_eager().then_some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
