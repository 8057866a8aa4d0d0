//! Granite: Llama's parameters; embeddings, residuals and logits are scaled.

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, SoftCaps, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `granite`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "granite",
        classes: &["GraniteForCausalLM"],
    },
    catalogue: catalogue!["ibm-granite/granite-3.0-8b-base",],
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Free,
    biases: Biases::of_attention_and_mlp,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            scales_stream: true,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Replaces,
};
