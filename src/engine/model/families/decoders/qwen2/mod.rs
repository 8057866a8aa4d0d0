//! Qwen2 and Qwen2.5: Llama with query, key and value biases.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, WindowLength, Windows};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `qwen2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "qwen2",
        classes: &["Qwen2ForCausalLM"],
    },
    catalogue: catalogue![
        "qwen2.5-0.5b" = "Qwen/Qwen2.5-0.5B-Instruct",
        "qwen2.5-1.5b" = "Qwen/Qwen2.5-1.5B-Instruct",
        "qwen2.5-3b" = "Qwen/Qwen2.5-3B-Instruct",
        "qwen2.5-7b" = "Qwen/Qwen2.5-7B-Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen/Qwen2.5-1.5B-Instruct",
        "Qwen/Qwen2.5-3B-Instruct",
        "Qwen/Qwen2.5-7B-Instruct",
        "Qwen/Qwen2.5-14B-Instruct",
        "Qwen/Qwen2.5-32B-Instruct",
        "Qwen/Qwen2.5-72B-Instruct",
        "Qwen/Qwen2.5-0.5B",
        "Qwen/Qwen2.5-1.5B",
        "Qwen/Qwen2.5-3B",
        "Qwen/Qwen2.5-7B",
        "Qwen/Qwen2.5-14B",
        "Qwen/Qwen2.5-32B",
        "Qwen/Qwen2.5-72B",
        "Qwen/Qwen2-0.5B-Instruct",
        "Qwen/Qwen2-1.5B-Instruct",
        "Qwen/Qwen2-7B-Instruct",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    ],
    defaults: DecoderDefaults::QWEN2,
    biases: |_| {
        Ok(Biases {
            qkv: true,
            ..Biases::NONE
        })
    },
    windows: Windows {
        switch: Some("use_sliding_window"),
        length: WindowLength::Or(4096),
        slides: Windows::past_full_layers,
    },
    tensor_parallel: true,
    pipeline: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
