//! Llama-3.2-Vision.

mod config;
mod forward;
mod positions;
mod text;
mod text_family;
mod vision;

pub use config::{MllamaConfig, MllamaTextConfig, MllamaVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, Override, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "mllama",
        classes: &["MllamaForConditionalGeneration"],
    }],
    catalogue: catalogue![
        "mllama" = "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "meta-llama/Llama-3.2-11B-Vision",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "meta-llama/Llama-3.2-90B-Vision-Instruct",
    ],
    overrides: &[
        Override {
            setting: "layers",
            section: Some("text_config"),
            key: "num_hidden_layers",
        },
        Override {
            setting: "cross",
            section: Some("text_config"),
            key: "cross_attention_layers",
        },
    ],
    use_cache: UseCache::OfText,
};

impl Registered for MllamaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for MllamaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Mllama::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::ONE_IMAGE
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.decoder.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(&self.text.decoder)
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

    fn batches_other_images(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: true,
            },
            liger: Liger::Fails,
            no_flash: Some(NoFlash::Mllama),
            ..Support::USUAL
        }
    }
}
