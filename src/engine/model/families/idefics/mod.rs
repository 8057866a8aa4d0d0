//! IDEFICS.

mod config;
mod forward;
mod layers;

pub use config::{FrozenParts, IdeficsConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType::new("idefics", &["IdeficsForVisionText2Text"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for IdeficsConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for IdeficsConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Idefics::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::IMAGES
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
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

    fn batches_other_images(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            adapters: AdapterMaps::OtherNames,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
