//! Gemma 3's language model: Gemma 2 with normalised queries and keys in place of soft caps.

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, GemmaModules, HeadRule, Modules, SoftCaps, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `gemma3_text`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "gemma3_text",
        classes: &["Gemma3ForCausalLM"],
    },
    catalogue: catalogue!["google/gemma-3-1b-pt",],
    defaults: DecoderDefaults {
        vocab: 262_208,
        max_positions: 131_072,
        theta: 1e6,
        ..DecoderDefaults::GEMMA2
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention,
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |s, _, layer| {
            let pattern = s.size_or("sliding_window_pattern", 6, limits::LAYERS)?;
            Ok(!(layer + 1).is_multiple_of(pattern))
        },
    },
    qk_norm: true,
    newer_activation_key: Some("hidden_activation"),
    soft_caps: SoftCaps::Given,
    modules: Modules::Gemma(GemmaModules {
        second_norm: "post_attention_layernorm",
        sandwich_norms: true,
        rotary_by_kind: true,
        // The attention ignores its soft cap.
        caps_scores: false,
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
