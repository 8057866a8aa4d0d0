//! VaultGemma: Gemma 2 without the norms after attention and MLP.

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, GemmaModules, HeadRule, Modules, SoftCaps, WindowLength, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `vaultgemma`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "vaultgemma",
        classes: &["VaultGemmaForCausalLM"],
    },
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
        second_norm: "pre_feedforward_layernorm",
        sandwich_norms: false,
        rotary_by_kind: false,
        caps_scores: true,
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
