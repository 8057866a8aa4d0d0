//! PaliGemma 1 and 2.

mod config;
mod forward;

pub use config::PaliGemmaConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, Override, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::Liger;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "paligemma",
        classes: &["PaliGemmaForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "paligemma-3b" = "google/paligemma-3b-pt-224",
        "google/paligemma-3b-pt-224",
        "google/paligemma-3b-pt-448",
        "google/paligemma2-3b-pt-224",
        "google/paligemma2-3b-pt-448",
    ],
    overrides: &[Override {
        setting: "image",
        section: Some("vision_config"),
        key: "image_size",
    }],
    use_cache: UseCache::OfText,
};

impl Registered for PaliGemmaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for PaliGemmaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::PaliGemma::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        match self.text.is_gemma() {
            true => Fidelity::Exact,
            false => Fidelity::ReadOnly,
        }
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
        Heads::of_decoder(&self.text)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.vision.grid.patches()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.grid.image, self.vision.grid.patch)
    }

    fn support(&self) -> Support<'_> {
        Support {
            liger: Liger::Fails,
            ..Support::USUAL
        }
    }
}
