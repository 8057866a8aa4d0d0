//! Aria.

mod config;
mod forward;
mod projector;

pub use config::AriaConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "aria",
        classes: &["AriaForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for AriaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for AriaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Aria::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            // The default configuration has queries for no image of its own size.
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
        setup.images * self.image_tokens().unwrap_or(0)
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn text_type(&self) -> &'static str {
        self.text.family.name()
    }

    fn support(&self) -> Support<'_> {
        Support {
            // Adapters were not compared.
            adapters: AdapterMaps::None,
            ..Support::USUAL
        }
    }
}
