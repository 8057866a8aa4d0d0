//! CWM: Llama with sliding windows in three of four blocks.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, HeadRule, WindowLength, Windows};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `cwm`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "cwm",
        classes: &["CwmForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 128_256,
        hidden: 6144,
        intermediate: 21_504,
        layers: 64,
        heads: 48,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        theta: 1e6,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        Ok(Biases {
            mlp: s.flag("mlp_bias", false)?,
            ..Biases::NONE
        })
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(8192),
        slides: |_, _, layer| Ok(!layer.is_multiple_of(4)),
    },
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
