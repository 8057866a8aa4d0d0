//! DeepSeek-VL2, whose repository brings its own code.

mod attention;
mod config;
mod experts;
mod forward;
mod language;
mod tiles;
mod vision;

pub use config::{AttentionConfig, DeepseekVlV2Config, ExpertsConfig, LanguageConfig, ProjectorConfig, TowerConfig};

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::NoFlash;
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[ModelType {
        name: "deepseek_vl_v2",
        classes: &["DeepseekVLV2ForCausalLM"],
    }],
    catalogue: catalogue!["deepseek-ai/deepseek-vl2-tiny", "deepseek-ai/deepseek-vl2-small"],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for DeepseekVlV2Config {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(_: &str, s: &Section) -> Result<Self, ModelError> {
        Self::read(s)
    }
}

impl Family for DeepseekVlV2Config {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::DeepseekVlV2::new(b, self))
    }

    /// The tower's code calls the attention of xformers, in whose place it is simulated with PyTorch's own, which is what was
    /// measured; the language model is that of transformers 4.41, which its code is written for.
    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["xformers"])
    }

    fn takes(&self) -> Takes {
        Takes {
            image_size: true,
            ..Takes::IMAGES
        }
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.text.max_positions)
    }

    fn heads(&self) -> Heads {
        let hidden = self.text.hidden;
        match self.text.attention {
            AttentionConfig::Llama(shared) => Heads {
                key_value: shared,
                ..Heads::of_all(self.text.heads, hidden)
            },
            AttentionConfig::Latent { unrotated, rotated, .. } => Heads {
                query: self.text.heads,
                key_value: self.text.heads,
                width: unrotated + rotated,
            },
        }
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, setup: &Setup) -> u64 {
        self.fitted(setup).iter().map(|&tiles| self.tokens_of(tiles)).sum()
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Packed
    }

    fn sizes(&self) -> Sizes {
        Sizes::of_image(self.vision.grid.image, self.vision.grid.patch)
    }

    fn batches_other_images(&self) -> bool {
        false
    }

    fn support(&self) -> Support<'_> {
        Support {
            no_flash: Some(NoFlash::NotSimulated),
            ..Support::USUAL
        }
    }

    fn batches_ragged(&self) -> bool {
        false
    }
}
