//! Qwen3.5 and Qwen3.5-MoE.

mod config;
mod forward;

pub use config::Qwen35Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::Liger;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "qwen3_5",
            classes: &["Qwen3_5ForConditionalGeneration"],
        },
        ModelType {
            name: "qwen3_5_moe",
            classes: &["Qwen3_5MoeForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "Qwen/Qwen3.5-9B",
        "Qwen/Qwen3.5-35B-A3B",
        "Qwen/Qwen3.5-4B",
        "Qwen/Qwen3.5-27B",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Qwen35Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }
}

impl Family for Qwen35Config {
    fn takes_item_count(&self) -> bool {
        false
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["flash-linear-attention", "causal-conv1d"])
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
        self.text.attention_heads()
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
            adapters: self.text.adapters(),
            liger: Liger::NotSimulated,
            ..Support::USUAL
        }
    }
}
