//! Muse Glimmer.

mod config;
mod forward;
mod text;
mod vision;

pub use config::{MuseGlimmerConfig, MuseVisionConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "muse_glimmer",
        classes: &["MuseGlimmerForConditionalGeneration"],
    }],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for MuseGlimmerConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for MuseGlimmerConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::MuseGlimmer::new(b, self))
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

    fn knows_image_sizes(&self) -> bool {
        // The grid whose shape is nearest to the image's, of those with at most 4096 tokens (`smart_resize`).
        false
    }

    fn takes_item_count(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            liger: Liger::NotSimulated,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }
}
