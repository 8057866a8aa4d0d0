//! Fuyu.

mod config;
mod forward;

pub use config::FuyuConfig;

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
        name: "fuyu",
        classes: &["FuyuForCausalLM"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for FuyuConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for FuyuConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Fuyu::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
            ..Takes::ONE_IMAGE
        }
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.text.heads, self.text.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        let side = self.patches_a_side(setup);
        // The processor ends each row of patches with a token for a new line.
        setup.images * side * (side + 1)
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.grid.image, self.grid.patch)
    }

    fn batches_ragged(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            adapters: AdapterMaps::OtherNames,
            ..Support::USUAL
        }
    }
}
