//! Gemma: scaled embeddings, `1 + weight` norms.

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, GemmaModules, HeadRule, Modules, SoftCaps, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `gemma`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "gemma",
        classes: &["GemmaForCausalLM"],
    },
    catalogue: catalogue!["google/gemma-2b", "google/gemma-7b",],
    defaults: DecoderDefaults::GEMMA,
    heads: HeadRule::Free,
    biases: Biases::of_attention,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Gemma(GemmaModules {
        second_norm: "post_attention_layernorm",
        sandwich_norms: false,
        rotary_by_kind: false,
        caps_scores: false,
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Replaces,
};
