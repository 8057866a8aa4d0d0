//! Ovis2.5, whose repositories bring their own code.

mod config;
mod forward;
mod vision;

pub use config::Ovis25Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "ovis2_5",
        classes: &["Ovis2_5"],
    }],
    catalogue: catalogue!["AIDC-AI/Ovis2.5-2B", "AIDC-AI/Ovis2.5-9B"],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Ovis25Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Ovis25Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Ovis25::new(b, self))
    }

    /// Exact where tower and language model take the same attention. The repository's code takes flash-attn in the tower wherever it
    /// is installed; `attn` says for both here.
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

    /// An indicator stands before the tokens of an image, and one behind.
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
        Support::USUAL
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
