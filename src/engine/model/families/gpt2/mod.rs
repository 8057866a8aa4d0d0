//! GPT-2.

mod config;
mod forward;

pub use config::Gpt2Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "gpt2",
            classes: &["GPT2LMHeadModel"],
        },
        ModelType {
            name: "gpt-sw3",
            classes: &["GPT2LMHeadModel"],
        },
    ],
    catalogue: catalogue![
        "gpt2" = "openai-community/gpt2",
        "gpt2-medium" = "openai-community/gpt2-medium",
        "gpt2-large" = "openai-community/gpt2-large",
        "gpt2-xl" = "openai-community/gpt2-xl",
        "openai-community/gpt2",
        "openai-community/gpt2-medium",
        "openai-community/gpt2-large",
        "openai-community/gpt2-xl",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Gpt2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Gpt2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Gpt2::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.heads, self.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: false,
            },
            // Its linear layers are `Conv1D`s.
            adapters: AdapterMaps::None,
            liger: Liger::Unknown,
            no_flash: None,
            tensor_parallel: None,
            pipeline: None,
        }
    }
}
