//! Bamba, the Granite hybrids, Nemotron-H, Falcon H1 and Jamba: decoders whose layers scan the states of Mamba or Mamba 2,
//! attend, or do both.

mod config;
mod experts;
mod forward;
mod layer;
mod rows;

pub use config::MambaHybridConfig;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::AdapterMaps;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;
use config::HybridKind;

static FACTS: Facts = Facts {
    model_types: &[
        rows::BAMBA.model_type,
        rows::GRANITE.model_type,
        rows::NEMOTRON.model_type,
        rows::FALCON.model_type,
        rows::JAMBA.model_type,
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for MambaHybridConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read_of(model_type, s)
    }
}

impl Family for MambaHybridConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["mamba-ssm", "causal-conv1d"])
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
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

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    /// peft refuses to adapt `out_proj` of Falcon H1, which `all-linear` names (`_check_lora_target_modules_mamba`).
    fn support(&self) -> Support<'_> {
        Support {
            adapters: match (self.kind, &self.text.experts) {
                (HybridKind::Falcon, _) => AdapterMaps::None,
                (_, Some(_)) => AdapterMaps::BesideExperts,
                (_, None) => AdapterMaps::Usual,
            },
            ..Support::USUAL
        }
    }
}
