//! Kimi-K2.5.

mod config;
mod forward;
mod positions;
mod vision;

pub use config::{KimiK25Config, KimiVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::decoder::gemma::GemmaText;
use crate::model::decoder::stack::Decoder;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "kimi_k25",
        classes: &["Kimi_K25ForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for KimiK25Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for KimiK25Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.text.is_gemma() {
            true => Box::new(forward::KimiK25::<GemmaText>::new(b, self)),
            false => Box::new(forward::KimiK25::<Decoder>::new(b, self)),
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
            adapters: match self.text.experts {
                Some(_) => AdapterMaps::BesideExperts,
                None => AdapterMaps::Usual,
            },
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
