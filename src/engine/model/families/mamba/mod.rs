//! Mamba, Falcon Mamba and Mamba 2: language models whose layers scan a state.

mod config;
mod forward;
mod mixer;
mod scan;

pub use config::{Kind, MambaConfig};
pub(crate) use mixer::Mixer;
pub(super) use scan::{ScanCall, selective_scan};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType::new("mamba", &["MambaForCausalLM"]),
        ModelType::new("falcon_mamba", &["FalconMambaForCausalLM"]),
        ModelType::new("mamba2", &["Mamba2ForCausalLM"]),
    ],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for MambaConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read_of(model_type, s)
    }
}

impl Family for MambaConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::Mamba::new(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["mamba-ssm", "causal-conv1d"])
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Fixed
    }

    fn heads(&self) -> Heads {
        Heads::of_all(1, self.intermediate)
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

    /// peft refuses to adapt `out_proj` of these models, which `all-linear` names
    /// (`_check_lora_target_modules_mamba`), and a mixer reads the weight of `dt_proj` past its adapter.
    fn support(&self) -> Support<'_> {
        Support {
            adapters: AdapterMaps::None,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
