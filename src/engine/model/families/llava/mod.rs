//! LLaVA-1.5.

mod config;
pub(crate) mod forward;

pub use config::LlavaConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, Override, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::lazy::Blocks;
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "llava",
        classes: &["LlavaForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "llava-1.5-7b" = "llava-hf/llava-1.5-7b-hf",
        "llava-1.5-13b" = "llava-hf/llava-1.5-13b-hf",
        "tinyllava-1.5b",
        "llava-hf/llava-1.5-7b-hf",
        "llava-hf/llava-1.5-13b-hf",
    ],
    overrides: &[Override {
        setting: "image",
        section: Some("vision_config"),
        key: "image_size",
    }],
    use_cache: UseCache::OfText,
};

impl Registered for LlavaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for LlavaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => (Blocks::get().llava_gemma)(b, self),
            false => Box::new(forward::Llava::<Decoder>::new(b, self)),
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
        setup.images * self.image_tokens()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.image, self.vision.patch)
    }

    fn text_type(&self) -> &'static str {
        self.text.family.name()
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
            // The head is tied if the text section says so, and then transformers splits the embedding and not the head.
            tensor_parallel: match self.text.tie_word_embeddings {
                true => None,
                false => TensorPlan::of(&self.text, false),
            },
            pipeline: self.text.pipelined(),
        }
    }
}
