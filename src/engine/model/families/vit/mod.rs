//! ViT for image classification.

mod config;
mod forward;

pub use config::VitConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, Override, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "vit",
        classes: &["ViTForImageClassification", "ViTModel", "ViTForMaskedImageModeling"],
    }],
    catalogue: catalogue![
        "vit-large" = "google/vit-large-patch16-224",
        "google/vit-base-patch16-224",
        "google/vit-large-patch16-224",
    ],
    overrides: &[
        Override {
            setting: "image",
            section: None,
            key: "image_size",
        },
        Override {
            setting: "patch",
            section: None,
            key: "patch_size",
        },
    ],
    use_cache: UseCache::OfText,
};

impl Registered for VitConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for VitConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Vit::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
            ..Takes::SAMPLES
        }
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.shape.heads, self.shape.hidden)
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
        Sizes::of_image(self.grid.image, self.grid.patch)
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: false,
                tower_takes_ids: false,
            },
            adapters: AdapterMaps::None,
            ..Support::USUAL
        }
    }
}
