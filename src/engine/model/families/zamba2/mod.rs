//! Zamba 2 (`transformers/models/zamba2`).

mod config;
mod forward;
mod layer;
mod transformer;

pub use config::Zamba2Config;
pub(super) use forward::{Zamba2, headed};
pub(super) use layer::{Before, Layer, MambaLayer, Mix, Transform};

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
    model_types: &[ModelType::new("zamba2", &["Zamba2ForCausalLM"])],
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for Zamba2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for Zamba2Config {
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
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads {
            query: self.heads,
            key_value: self.kv_heads,
            width: self.head_dim(),
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

    /// Adapters on blocks that layers share were not compared.
    fn support(&self) -> Support<'_> {
        Support {
            adapters: AdapterMaps::None,
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    /// The mixer of a hybrid layer is a layer that is checkpointed too.
    fn nests_checkpoints(&self) -> bool {
        true
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
