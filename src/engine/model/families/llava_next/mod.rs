//! LLaVA-NeXT, also called 1.6.

mod anyres;
mod config;
mod forward;

pub use anyres::AnyRes;
pub use config::LlavaNextConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::Family;
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "llava_next",
        classes: &["LlavaNextForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "llava-hf/llava-v1.6-vicuna-7b-hf",
        "llava-hf/llava-v1.6-vicuna-13b-hf",
        "llava-hf/llava-v1.6-mistral-7b-hf",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Family for LlavaNextConfig {
    fn facts() -> &'static Facts {
        &FACTS
    }

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::LlavaNext::<GemmaText>::new(b, self)),
            false => Box::new(forward::LlavaNext::<Decoder>::new(b, self)),
        }
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
        Sizes::of_image(self.vision.image, self.vision.patch)
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: false,
            },
            adapters: AdapterMaps::Usual,
            liger: Liger::Replaces,
            no_flash: None,
            tensor_parallel: TensorPlan::of(&self.text, false),
            pipeline: None,
        }
    }
}
