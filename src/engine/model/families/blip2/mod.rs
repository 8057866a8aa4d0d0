//! BLIP-2.

mod config;
mod forward;
mod qformer;
mod vision;

pub use config::{Blip2Config, Blip2VisionConfig, QFormerConfig};
pub(crate) use qformer::{FeedForward, Output, QFormer, QFormerBlocks, nothing_padded};
pub(crate) use vision::{Blip2Vision, Blip2VisionOutput};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "blip-2",
        classes: &["Blip2ForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "blip2-2.7b" = "Salesforce/blip2-opt-2.7b",
        "Salesforce/blip2-opt-2.7b",
        "Salesforce/blip2-opt-6.7b",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Blip2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Blip2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Blip2::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::ONE_IMAGE
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.text.positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.text.heads, self.text.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        self.queries
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
                model_takes_ids: false,
                tower_takes_ids: false,
            },
            no_flash: Some(NoFlash::Blip2),
            ..Support::USUAL
        }
    }
}
