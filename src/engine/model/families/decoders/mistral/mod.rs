//! Mistral: Llama with a sliding window.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaModules, Modules, WindowLength, Windows};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `mistral`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "mistral",
        classes: &["MistralForCausalLM"],
    },
    catalogue: catalogue![
        "mistralai/Mistral-7B-v0.1",
        "mistralai/Mistral-7B-v0.3",
        "mistralai/Mistral-Nemo-Base-2407",
        "mistralai/Mistral-Small-24B-Instruct-2501",
        "mistralai/Mistral-7B-Instruct-v0.2",
        "mistralai/Mistral-Large-Instruct-2407",
    ],
    defaults: DecoderDefaults {
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |_| Ok(Biases::NONE),
    windows: Windows::of_every_layer(WindowLength::Or(4096)),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        ..LlamaModules::LLAMA
    }),
    tensor_parallel: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
