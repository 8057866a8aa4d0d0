//! Ovis2.

mod config;
mod forward;
mod vision;

pub use config::{Ovis2Config, Ovis2VisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

/// Tokens around those of an image that is not cut into tiles: its start, the end of its tokens, and its end.
const MARKS: u64 = 3;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "ovis2",
        classes: &["Ovis2ForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Ovis2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Ovis2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::Ovis2::<GemmaText>::new(b, self)),
            false => Box::new(forward::Ovis2::<Decoder>::new(b, self)),
        }
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
        Heads::of_decoder(&self.text)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        setup.images * (self.tile_tokens() + MARKS)
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
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
    fn knows_image_sizes(&self) -> bool {
        false
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
