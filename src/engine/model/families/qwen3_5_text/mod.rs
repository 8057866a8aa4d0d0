//! The language models of Qwen3.5 and Qwen3.5-MoE, and Qwen3-Next: gated DeltaNet in three layers of four.

mod forward;

use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support};
use crate::model::config::section::Section;
use crate::model::facts::{Facts, ModelType, UseCache, catalogue};
use crate::model::family::{Family, Registered};
use crate::model::forward::Forward;
use crate::model::libraries::Liger;
use crate::model::parts::delta_decoder::{DeltaDecoderConfig, QWEN3_5, QWEN3_5_MOE, QWEN3_NEXT};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: &[
        ModelType {
            name: "qwen3_5_text",
            classes: &["Qwen3_5ForCausalLM"],
        },
        ModelType {
            name: "qwen3_5_moe_text",
            classes: &["Qwen3_5MoeForCausalLM"],
        },
        ModelType {
            name: "qwen3_next",
            classes: &["Qwen3NextForCausalLM"],
        },
    ],
    catalogue: catalogue!["Qwen/Qwen3-Next-80B-A3B-Instruct",],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for DeltaDecoderConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let form = match model_type {
            "qwen3_5_moe_text" => &QWEN3_5_MOE,
            "qwen3_next" => &QWEN3_NEXT,
            _ => &QWEN3_5,
        };
        // A file of the whole model, whose class is the language model alone, has a section for it.
        match s.optional_nested("text_config", "Qwen3.5 language")? {
            Some(text) => Self::read(&text, form),
            None => Self::read(s, form),
        }
    }
}

impl Family for DeltaDecoderConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        Box::new(forward::model(b, self))
    }

    fn fidelity(&self) -> Fidelity {
        Fidelity::ExactWithout(&["flash-linear-attention", "causal-conv1d"])
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
            adapters: self.adapters(),
            liger: Liger::NotSimulated,
            ..Support::USUAL
        }
    }
}
