//! Decoders of encoder-decoder models, alone (`BartForCausalLM` and its kin).

mod config;
mod forms;
mod forward;

pub use config::BartConfig;

use crate::model::ModelError;
use crate::model::answers::{Heads, Positions};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::parts::text::{HeadForm, TextFamily, TextLm, TextSupport};
use crate::nn::{self, Builder};

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("bart", &["BartForCausalLM"]),
        ModelType::new("plbart", &["PLBartForCausalLM"]),
        ModelType::new("mbart", &["MBartForCausalLM"]),
        ModelType::new("pegasus", &["PegasusForCausalLM"]),
        ModelType::new("marian", &["MarianForCausalLM"]),
        ModelType::new("blenderbot", &["BlenderbotForCausalLM"]),
        ModelType::new("blenderbot-small", &["BlenderbotSmallForCausalLM"]),
        ModelType::new("bigbird_pegasus", &["BigBirdPegasusForCausalLM"]),
        ModelType::new("mvp", &["MvpForCausalLM"]),
        ModelType::new("trocr", &["TrOCRForCausalLM"]),
        ModelType::new("whisper", &["WhisperForCausalLM"]),
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl TextFamily for BartConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        let head = HeadForm {
            name: self.form.head,
            bias: false,
            is_tied: self.tie_word_embeddings,
        };
        let model = TextLm::new(b, "model.decoder", head, || forward::Decoder::new(b, self));
        Box::new(model.with_loss(nn::unshifted_lm_loss))
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.block.heads, self.block.hidden)
    }

    fn libraries(&self) -> TextSupport {
        TextSupport {
            adapters: AdapterMaps::OtherNames,
            liger: Liger::Unknown,
            no_flash: self.form.eager_only.then_some(NoFlash::NotSimulated),
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
