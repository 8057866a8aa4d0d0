//! Idefics3 and SmolVLM.

mod config;
mod forward;
mod smolvlm_merger;

pub use config::Idefics3Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "smolvlm",
            classes: &["SmolVLMForConditionalGeneration"],
        },
        ModelType {
            name: "idefics3",
            classes: &["Idefics3ForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "smolvlm-256m" = "HuggingFaceTB/SmolVLM-256M-Instruct",
        "smolvlm2-2.2b" = "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        "HuggingFaceTB/SmolVLM-256M-Instruct",
        "HuggingFaceTB/SmolVLM-500M-Instruct",
        "HuggingFaceTB/SmolVLM2-256M-Video-Instruct",
        "HuggingFaceTB/SmolVLM2-500M-Video-Instruct",
        "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        "HuggingFaceM4/Idefics3-8B-Llama3",
    ],
    overrides: &[],
    use_cache: UseCache::OfModel,
};

impl Registered for Idefics3Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s, model_type == "smolvlm")
    }
}

impl Family for Idefics3Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Idefics3::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        match self.text.is_gemma() {
            true => Fidelity::ReadOnly,
            false => Fidelity::Exact,
        }
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
        sizes.iter().map(|&size| self.tiles(size)).sum()
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.tile_tokens()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn text_type(&self) -> &'static str {
        self.text.family.name()
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: true,
            },
            adapters: AdapterMaps::Usual,
            liger: Liger::Replaces,
            no_flash: None,
            tensor_parallel: TensorPlan::of(&self.text, false),
            pipeline: self.text.pipelined(),
        }
    }
}
