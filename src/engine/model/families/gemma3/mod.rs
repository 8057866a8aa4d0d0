//! Gemma 3 with vision, and ShieldGemma 2.

mod config;
mod forward;

pub use config::Gemma3Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "gemma3",
            classes: &["Gemma3ForConditionalGeneration"],
        },
        ModelType {
            name: "shieldgemma2",
            classes: &["Gemma3ForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "gemma3-4b" = "google/gemma-3-4b-it",
        "google/gemma-3-4b-it",
        "google/gemma-3-12b-it",
        "google/gemma-3-27b-it",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Gemma3Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }
}

impl Family for Gemma3Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Gemma3::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            text_alone: true,
            ..Takes::IMAGES
        }
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.image_tokens
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support {
            liger: self.liger,
            ..Support::USUAL
        }
    }
}
