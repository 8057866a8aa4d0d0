//! Gemma 2: norms before and after each part, soft-capped scores and logits.

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, GemmaModules, HeadRule, Modules, SoftCaps, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `gemma2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "gemma2",
        classes: &["Gemma2ForCausalLM"],
    },
    catalogue: catalogue!["google/gemma-2-2b", "google/gemma-2-9b", "google/gemma-2-27b",],
    defaults: DecoderDefaults::GEMMA2,
    heads: HeadRule::Divides,
    biases: Biases::of_attention,
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |_, _, layer| Ok(layer.is_multiple_of(2)),
    },
    newer_activation_key: Some("hidden_activation"),
    soft_caps: SoftCaps::Default,
    modules: Modules::Gemma(GemmaModules {
        second_norm: "post_attention_layernorm",
        sandwich_norms: true,
        rotary_by_kind: false,
        caps_scores: true,
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
