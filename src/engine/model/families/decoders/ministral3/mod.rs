//! Ministral 3: Mistral's parameters; queries are scaled by position (`transformers/models/ministral3`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, WindowLength, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `ministral3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "ministral3",
        classes: &["Ministral3ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 131_072,
        intermediate: 14_336,
        layers: 34,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 262_144,
        theta: 1e6,
        ..DecoderDefaults::LLAMA
    },
    biases: |_| Ok(Biases::NONE),
    windows: Windows::of_every_layer(WindowLength::Given),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        block: LlamaBlock {
            scales_queries: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
