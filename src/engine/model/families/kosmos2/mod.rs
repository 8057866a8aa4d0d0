//! KOSMOS-2 and KOSMOS-2.5.

mod config;
mod forward;
mod patches;
mod text;

pub use config::{Kosmos2Config, Kosmos25VisionConfig, KosmosTextConfig, VisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

const KOSMOS2_5: &str = "kosmos-2.5";

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("kosmos-2", &["Kosmos2ForConditionalGeneration"]),
        ModelType::new(KOSMOS2_5, &["Kosmos2_5ForConditionalGeneration"]),
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Kosmos2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s, model_type == KOSMOS2_5)
    }
}

impl Family for Kosmos2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Kosmos2::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::ONE_IMAGE
    }

    fn positions(&self) -> Positions {
        Positions::Learned(self.text.longest())
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.text.heads, self.text.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        self.latents
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
                model_takes_ids: self.text.is_kosmos2_5,
                tower_takes_ids: self.text.is_kosmos2_5,
            },
            adapters: AdapterMaps::OtherNames,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
