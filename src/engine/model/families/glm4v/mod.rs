//! GLM-4V (4.1V, 4.5V and 4.6V) and GLM-OCR.

mod config;
mod forward;
mod positions;

pub use config::{Glm4vConfig, Glm4vVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "glm4v",
            classes: &["Glm4vForConditionalGeneration"],
        },
        ModelType {
            name: "glm4v_moe",
            classes: &["Glm4vMoeForConditionalGeneration"],
        },
        ModelType {
            name: "glm46v",
            classes: &["Glm46VForConditionalGeneration"],
        },
        ModelType {
            name: "glmga",
            classes: &["Glm46VForConditionalGeneration"],
        },
        ModelType {
            name: "glm_ocr",
            classes: &["GlmOcrForConditionalGeneration"],
        },
    ],
    catalogue: catalogue!["zai-org/GLM-4.1V-9B-Thinking",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Glm4vConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(model_type, s)
    }
}

impl Family for Glm4vConfig {
    fn takes_item_count(&self) -> bool {
        false
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match &self.text.experts {
            Some(_) => Box::new(forward::model_with_experts(b, self)),
            None => Box::new(forward::model(b, self)),
        }
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
        ImageForm::Patches(&self.vision.patches, None)
    }

    fn sizes(&self) -> Sizes {
        self.vision.patches.sizes()
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
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
