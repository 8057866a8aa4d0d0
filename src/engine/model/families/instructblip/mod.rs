//! InstructBLIP and InstructBLIP-Video.

mod config;
mod forward;
mod qformer;

pub use config::InstructBlipConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

const VIDEO: &str = "instructblipvideo";

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "instructblip",
            classes: &["InstructBlipForConditionalGeneration"],
        },
        ModelType {
            name: VIDEO,
            classes: &["InstructBlipVideoForConditionalGeneration"],
        },
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for InstructBlipConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s, model_type == VIDEO)
    }
}

impl Family for InstructBlipConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::InstructBlip::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::ONE_IMAGE
    }

    /// Positions of the language model, or of the Q-Former, which reads the same text without the image, if it has fewer.
    fn positions(&self) -> Positions {
        Positions::Learned(
            self.text
                .positions
                .min(self.qformer_positions + Self::image_tokens(self)),
        )
    }

    fn heads(&self) -> Heads {
        Heads::of_all(self.text.heads, self.text.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        Self::image_tokens(self)
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
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
