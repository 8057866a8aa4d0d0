//! Qwen3-VL, Qwen3-VL-MoE and Cosmos 3 Omni.

mod config;
mod forward;

pub use config::Qwen3VlConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "qwen3_vl",
            classes: &["Qwen3VLForConditionalGeneration"],
        },
        ModelType {
            name: "qwen3_vl_moe",
            classes: &["Qwen3VLMoeForConditionalGeneration"],
        },
        ModelType {
            name: "cosmos3_omni",
            classes: &["Cosmos3OmniForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "qwen3-vl-2b" = "Qwen/Qwen3-VL-2B-Instruct",
        "qwen3-vl-4b" = "Qwen/Qwen3-VL-4B-Instruct",
        "Qwen/Qwen3-VL-2B-Instruct",
        "Qwen/Qwen3-VL-4B-Instruct",
        "Qwen/Qwen3-VL-8B-Instruct",
        "Qwen/Qwen3-VL-32B-Instruct",
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        "Qwen/Qwen3-VL-235B-A22B-Instruct",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Qwen3VlConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }
}

impl Family for Qwen3VlConfig {
    fn takes_item_count(&self) -> bool {
        false
    }

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
            adapters: match self.text.experts {
                Some(_) => AdapterMaps::BesideExperts,
                None => AdapterMaps::Usual,
            },
            liger: self.liger,
            ..Support::USUAL
        }
    }
}
