//! Pix2Struct.

mod attention;
mod bias;
mod config;
mod decoder;
mod encoder;
mod forward;
mod mlp;

pub use config::Pix2StructConfig;

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
        name: "pix2struct",
        classes: &["Pix2StructForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Pix2StructConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Pix2StructConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Pix2Struct::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            // Its tower and its decoder support it, the whole model does not (`supports_gradient_checkpointing`).
            checkpointing: false,
            ..Takes::ONE_IMAGE
        }
    }

    fn positions(&self) -> Positions {
        // Relative positions have no end.
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.text.heads,
            key_value: self.text.heads,
            width: self.text.head_width,
        }
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        // The decoder attends to the patches: `seq` counts the text alone.
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn batches_ragged(&self) -> bool {
        false
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
