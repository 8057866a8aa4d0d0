//! Aya Vision and Cohere 2 Vision.

mod config;
mod forward;

pub use config::AyaVisionConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::parts::tiles::{scaled_tiles_of, tiles_of};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "aya_vision",
            classes: &["AyaVisionForConditionalGeneration"],
        },
        ModelType {
            name: config::COHERE2,
            classes: &["Cohere2VisionForConditionalGeneration"],
        },
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for AyaVisionConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }
}

impl Family for AyaVisionConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::AyaVision::<GemmaText>::new(b, self)),
            false => Box::new(forward::AyaVision::<Decoder>::new(b, self)),
        }
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::IMAGES
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        let tiles = if self.is_cohere2() { scaled_tiles_of } else { tiles_of };
        sizes.iter().map(|&size| tiles(size, self.vision.grid().image)).sum()
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.image_tokens()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support::USUAL
    }
}
