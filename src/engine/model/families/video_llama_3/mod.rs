//! VideoLLaMA 3.

mod config;
mod forward;
mod vision;

pub use config::VideoLlama3Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "video_llama_3",
        classes: &["VideoLlama3ForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for VideoLlama3Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for VideoLlama3Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::VideoLlama3::<GemmaText>::new(b, self)),
            false => Box::new(forward::VideoLlama3::<Decoder>::new(b, self)),
        }
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            grid: true,
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
        self.vision.patches.tokens(setup)
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Patches(&self.vision.patches, None)
    }

    fn sizes(&self) -> Sizes {
        self.vision.patches.sizes()
    }

    fn support(&self) -> Support<'_> {
        Support {
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
