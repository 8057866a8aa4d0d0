//! Thinker of Qwen3-Omni, without sound.

mod config;
mod forward;

pub use config::Qwen3OmniConfig;

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
    model_types: &[ModelType {
        name: "qwen3_omni_moe_thinker",
        classes: &["Qwen3OmniMoeThinkerForConditionalGeneration"],
    }],
    catalogue: catalogue!["Qwen/Qwen3-Omni-30B-A3B-Instruct",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Qwen3OmniConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Qwen3OmniConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            grid: true,
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
            adapters: match self.text.experts {
                Some(_) => AdapterMaps::BesideExperts,
                None => AdapterMaps::Usual,
            },
            ..Support::USUAL
        }
    }
}
