//! Granite: Llama's parameters; embeddings, residuals and logits are scaled.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules};
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
    biases: Biases::of_attention_and_mlp,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            scales_stream: true,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
