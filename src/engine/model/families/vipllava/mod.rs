//! VipLLaVA.

mod config;
mod forward;

pub use config::VipLlavaConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, Override, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "vipllava",
        classes: &["VipLlavaForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[Override {
        setting: "image",
        section: Some("vision_config"),
        key: "image_size",
    }],
    use_cache: UseCache::OfText,
};

impl Registered for VipLlavaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for VipLlavaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::VipLlava::<GemmaText>::new(b, self)),
            false => Box::new(forward::VipLlava::<Decoder>::new(b, self)),
        }
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            text_alone: true,
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
        setup.images * self.vision.patches()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.image, self.vision.patch)
    }

    fn support(&self) -> Support<'_> {
        Support::USUAL
    }
}
