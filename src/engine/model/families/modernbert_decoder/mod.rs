//! ModernBERT as a decoder (`transformers/models/modernbert_decoder`).

mod block;
mod config;
mod head;
mod stack;

pub use config::ModernBertDecoderConfig;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{Stack, TextFamily, TextLm, TextSupport};
use crate::nn::Builder;
use crate::tape::Component;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("modernbert-decoder", &["ModernBertDecoderForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Module of the blocks.
const PATH: &str = "model";

impl TextFamily for ModernBertDecoderConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let t = b.tape();
        let stack = t.component(PATH, Component::LanguageModel, || stack::Decoder::new(b, self));
        let table = self.tie_word_embeddings.then(|| stack.table().clone());
        let head = t.component("", Component::Head, || {
            head::PredictionHead::new(b, self, table.as_ref())
        });
        Box::new(TextLm::of(PATH, stack, Box::new(head)))
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
}
