//! CLIP.

mod config;
mod forward;

pub use config::{ClipConfig, ClipTextConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "clip",
        classes: &["CLIPModel"],
    }],
    catalogue: catalogue![
        "clip-l" = "openai/clip-vit-large-patch14",
        "openai/clip-vit-base-patch32",
        "openai/clip-vit-base-patch16",
        "openai/clip-vit-large-patch14",
        "openai/clip-vit-large-patch14-336",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for ClipConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for ClipConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Clip::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::SAMPLES
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.vision.heads, self.vision.hidden)
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
            adapters: AdapterMaps::None,
            ..Support::USUAL
        }
    }
}
