//! Thinker of Qwen2.5-Omni, without sound.

mod config;
mod forward;

pub use config::Qwen25OmniConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "qwen2_5_omni_thinker",
        classes: &["Qwen2_5OmniThinkerForConditionalGeneration"],
    }],
    catalogue: catalogue!["Qwen/Qwen2.5-Omni-7B",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Qwen25OmniConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Qwen25OmniConfig {
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
        ImageForm::Patches(&self.vision.patches, Some(self.vision.window_tokens()))
    }

    fn sizes(&self) -> Sizes {
        self.vision.patches.sizes()
    }

    /// The limits of the published processor are not among what transformers' package holds.
    fn knows_image_sizes(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: true,
            },
            ..Support::USUAL
        }
    }
}
