//! Qwen2-VL.

mod config;
mod forward;

pub(crate) use config::read_text;
pub use config::{Qwen2VlConfig, Qwen2VlVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::Liger;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "qwen2_vl",
        classes: &["Qwen2VLForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "qwen2-vl-2b" = "Qwen/Qwen2-VL-2B-Instruct",
        "qwen2-vl-7b" = "Qwen/Qwen2-VL-7B-Instruct",
        "Qwen/Qwen2-VL-2B-Instruct",
        "Qwen/Qwen2-VL-7B-Instruct",
        "Qwen/Qwen2-VL-72B-Instruct",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Qwen2VlConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Qwen2VlConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            grid: true,
            text_alone: true,
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
        self.vision.patches.positions(setup)
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Patches(&self.vision.patches, None)
    }

    fn sizes(&self) -> Sizes {
        self.vision.patches.sizes()
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: true,
            },
            liger: Liger::Replaces,
            tensor_parallel: TensorPlan::of(&self.text, false),
            ..Support::USUAL
        }
    }
}
