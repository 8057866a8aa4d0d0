//! Granite 4 Vision.

mod config;
mod forward;
mod projector;

pub use config::Granite4VisionConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "granite4_vision",
        classes: &["Granite4VisionForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Granite4VisionConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Granite4VisionConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Granite4Vision::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
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
        self.image_tokens(setup)
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Packed
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.grid().image, self.vision.grid().patch)
    }

    fn support(&self) -> Support<'_> {
        Support {
            no_flash: Some(NoFlash::Blip2),
            ..Support::USUAL
        }
    }
}
