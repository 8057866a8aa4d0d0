//! Gemma: scaled embeddings, `1 + weight` norms.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, GemmaModules, Modules};
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
    biases: Biases::of_attention,
    modules: Modules::Gemma(GemmaModules {
        second_norm: "post_attention_layernorm",
        sandwich_norms: false,
        rotary_by_kind: false,
        caps_scores: false,
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
