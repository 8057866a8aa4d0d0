//! LFM2 and LFM2-MoE: short convolutions in most layers, attention in the others.

mod forward;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::AdapterMaps;
use crate::model::parts::lfm2_decoder::Lfm2Config;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("lfm2", &["Lfm2ForCausalLM"]),
        ModelType::new("lfm2_moe", &["Lfm2MoeForCausalLM"]),
    ],
    catalogue: catalogue!["LiquidAI/LFM2-1.2B",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Lfm2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        match model_type {
            "lfm2_moe" => Self::read_sparse(s),
            _ => Self::read(s),
        }
    }
}

impl Family for Lfm2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["causal-conv1d"])
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        self.attention_heads()
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
        Support {
            adapters: match self.experts {
                Some(_) => AdapterMaps::BesideExperts,
                None => AdapterMaps::Usual,
            },
            ..Support::USUAL
        }
    }
}
