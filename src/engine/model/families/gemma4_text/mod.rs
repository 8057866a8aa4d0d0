//! Gemma 4's language models.

mod config;
pub(in crate::model) mod forward;
mod layer;

pub use config::Gemma4TextConfig;
pub(in crate::model::families) use layer::{LayerContext, SharedStates};

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

/// Longest head that FlashAttention 2 takes.
const FLASH_WIDTH: u64 = 256;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "gemma4_text",
            classes: &["Gemma4ForCausalLM"],
        },
        ModelType {
            name: "gemma4_unified_text",
            classes: &["Gemma4UnifiedForCausalLM"],
        },
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Gemma4TextConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s, model_type == "gemma4_unified_text")
    }
}

impl Family for Gemma4TextConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Gemma4Lm::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::Exact
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        // The last layer is a full one.
        Heads {
            query: self.heads,
            key_value: self.kinds[0].kv_heads,
            width: self.kinds[0].width,
        }
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        let wide = self.kinds.iter().any(|heads| heads.width > FLASH_WIDTH);
        Support {
            liger: Liger::NotSimulated,
            no_flash: wide.then_some(NoFlash::WideHeads),
            ..Support::USUAL
        }
    }
}
