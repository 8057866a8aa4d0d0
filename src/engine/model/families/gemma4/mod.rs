//! Gemma 4 around its language model.

mod audio;
mod config;
mod forward;
mod patches;
mod tower;

pub use config::{Gemma4Config, Vision};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{Liger, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

/// Longest head that FlashAttention 2 takes.
const FLASH_WIDTH: u64 = 256;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "gemma4",
            classes: &["Gemma4ForConditionalGeneration"],
        },
        ModelType {
            name: "gemma4_unified",
            classes: &["Gemma4UnifiedForConditionalGeneration"],
        },
    ],
    catalogue: catalogue![
        "google/gemma-4-E2B-it",
        "google/gemma-4-E4B-it",
        "google/gemma-4-26B-A4B-it",
        "google/gemma-4-31B-it",
    ],
    overrides: &[],
    use_cache: UseCache::OfText,
};

/// Tokens that the images of a sample take; those without a size are square.
fn tokens(vision: &Vision, setup: &Setup) -> u64 {
    match setup.image_sizes.as_slice() {
        [] => setup.images * vision.tokens([vision.side(), vision.side()]),
        sizes => sizes.iter().map(|&size| vision.tokens(size)).sum(),
    }
}

impl Registered for Gemma4Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s, model_type == "gemma4_unified")
    }
}

impl Family for Gemma4Config {
    fn takes_item_count(&self) -> bool {
        false
    }

    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Gemma4::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        match self.vision {
            // The tower is left out of a step without images.
            Some(Vision::Tower(_)) => Takes {
                text_alone: true,
                ..Takes::IMAGES
            },
            Some(Vision::Patches(_)) => Takes::IMAGES,
            None => Takes::TEXT,
        }
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        // The last layer is a full one.
        Heads {
            query: self.text.heads,
            key_value: self.text.kinds[0].kv_heads,
            width: self.text.kinds[0].width,
        }
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        self.vision.as_ref().map_or(0, |vision| tokens(vision, setup))
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
        let wide = self.text.kinds.iter().any(|heads| heads.width > FLASH_WIDTH);
        Support {
            liger: Liger::NotSimulated,
            no_flash: wide.then_some(NoFlash::WideHeads),
            ..Support::USUAL
        }
    }
}
