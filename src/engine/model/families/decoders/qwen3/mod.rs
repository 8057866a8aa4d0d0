//! Qwen3: Llama with normalised queries and keys.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, WindowLength, Windows};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `qwen3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "qwen3",
        classes: &["Qwen3ForCausalLM"],
    },
    catalogue: catalogue![
        "Qwen/Qwen3-0.6B",
        "Qwen/Qwen3-1.7B",
        "Qwen/Qwen3-4B",
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-14B",
        "Qwen/Qwen3-32B",
        "Qwen/Qwen3-0.6B-Base",
        "Qwen/Qwen3-1.7B-Base",
        "Qwen/Qwen3-4B-Base",
        "Qwen/Qwen3-8B-Base",
        "Qwen/Qwen3-14B-Base",
    ],
    defaults: DecoderDefaults {
        head_dim: Some(128),
        ..DecoderDefaults::QWEN2
    },
    biases: Biases::of_attention,
    windows: Windows {
        switch: Some("use_sliding_window"),
        length: WindowLength::Or(4096),
        slides: Windows::past_full_layers,
    },
    qk_norm: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
