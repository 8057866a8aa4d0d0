//! Mistral 3 and LightOnOCR.

mod config;
mod forward;
mod projector;

pub use config::{Mistral3Config, Mistral3Kind};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

const LIGHTON: &str = "lighton_ocr";

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "mistral3",
            classes: &["Mistral3ForConditionalGeneration"],
        },
        ModelType {
            name: LIGHTON,
            classes: &["LightOnOcrForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        "mistralai/Ministral-3-3B-Instruct-2512",
        "mistralai/Ministral-3-8B-Instruct-2512",
        "mistralai/Ministral-3-14B-Instruct-2512",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Mistral3Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            LIGHTON => Self::read_lighton(s),
            _ => Self::read(s),
        }
    }
}

impl Family for Mistral3Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::Mistral3::<GemmaText>::new(b, self)),
            false => Box::new(forward::Mistral3::<Decoder>::new(b, self)),
        }
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
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
        self.sizes(setup).iter().map(|&size| self.tokens(size)).sum()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Packed
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.grid.image, self.vision.grid.patch * self.merge)
    }

    fn support(&self) -> Support<'_> {
        Support {
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
