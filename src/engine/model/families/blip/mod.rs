//! BLIP for captions.

mod block;
mod config;
mod forward;

pub(crate) use block::{BlipTextEmbeddings, BlipTextEncoder, BlipTextForm};
pub use config::{BlipConfig, BlipTextConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "blip",
        classes: &["BlipForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for BlipConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for BlipConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Blip::new(b, self))
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
        Heads::of_all(self.text.blocks.shape.heads, self.text.blocks.shape.hidden)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        // Cross-attention reads the image, which takes no positions of the text.
        0
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
            // Adapters were not compared.
            adapters: AdapterMaps::None,
            liger: Liger::Unknown,
            no_flash: Some(NoFlash::NotSimulated),
            tensor_parallel: None,
            pipeline: None,
        }
    }
}
