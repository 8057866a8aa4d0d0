//! Llama 4.

mod config;
mod forward;
mod moe;
mod norm;
mod text;
mod text_config;
mod text_family;
mod tiles;
mod vision;

pub use config::{Llama4Config, Llama4VisionConfig};
pub use text_config::{BlockKind, Llama4TextConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "llama4",
        classes: &["Llama4ForConditionalGeneration"],
    }],
    catalogue: catalogue!["meta-llama/Llama-4-Scout-17B-16E-Instruct",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Llama4Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Llama4Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Llama4::new(b, self))
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
        self.text.all_heads()
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes
            .iter()
            .map(|&size| tiles::tiles_of(self.vision.grid.image, size))
            .sum()
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * self.vision.tokens()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: true,
            },
            adapters: AdapterMaps::BesideOtherExperts,
            liger: Liger::NotSimulated,
            no_flash: Some(NoFlash::NotSimulated),
            tensor_parallel: None,
            pipeline: None,
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
