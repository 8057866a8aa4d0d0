//! LLaVA-NeXT, also called 1.6.

mod anyres;
mod config;
mod forward;

pub use anyres::AnyRes;
pub(crate) use config::pinpoints;
pub use config::{LlavaNextConfig, LlavaNextKind};
pub(crate) use forward::packed;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::Liger;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

const VIDEO: &str = "llava_next_video";
const ONEVISION: &str = "llava_onevision";

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "llava_next",
            classes: &["LlavaNextForConditionalGeneration"],
        },
        ModelType {
            name: VIDEO,
            classes: &["LlavaNextVideoForConditionalGeneration"],
        },
        ModelType {
            name: ONEVISION,
            classes: &["LlavaOnevisionForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "llava-hf/llava-v1.6-vicuna-7b-hf",
        "llava-hf/llava-v1.6-vicuna-13b-hf",
        "llava-hf/llava-v1.6-mistral-7b-hf",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for LlavaNextConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            VIDEO => Self::read_video(s),
            ONEVISION => Self::read_onevision(s),
            _ => Self::read(s),
        }
    }
}

impl Family for LlavaNextConfig {
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
            liger: match self.kind {
                LlavaNextKind::Next => Liger::Replaces,
                LlavaNextKind::Video(_) | LlavaNextKind::Onevision(_) => Liger::Unknown,
            },
            tensor_parallel: match self.kind {
                LlavaNextKind::Next => TensorPlan::of(&self.text, false),
                LlavaNextKind::Video(_) | LlavaNextKind::Onevision(_) => None,
            },
            ..Support::USUAL
        }
    }
}
