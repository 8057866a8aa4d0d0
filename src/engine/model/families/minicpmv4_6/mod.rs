//! MiniCPM-V 4.6.

mod config;
mod forward;
mod merger;
mod vision;
mod window_merger;

pub use config::MiniCpmV46Config;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "minicpmv4_6",
        classes: &["MiniCPMV4_6ForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for MiniCpmV46Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for MiniCpmV46Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::MiniCpmV46::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["flash-linear-attention", "causal-conv1d"])
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
        self.text.attention_heads()
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        match self.has_images {
            true => self.vision.tower.patches.tokens(setup),
            false => 0,
        }
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Patches(&self.vision.tower.patches, None)
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support {
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
