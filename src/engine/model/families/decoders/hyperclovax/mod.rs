//! HyperCLOVA X: Llama with scaled embeddings, residuals and logits, and norms around its parts (`transformers/models/hyperclovax`).

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, NormPlacement};
use crate::model::facts::ModelType;

/// `hyperclovax`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hyperclovax",
        classes: &["HyperCLOVAXForCausalLM"],
    },
    defaults: DecoderDefaults {
        max_positions: 2048,
        ..DecoderDefaults::LLAMA
    },
    biases: Biases::of_attention_and_mlp,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            placement: NormPlacement::Around(["post_norm1", "post_norm2"], Some("use_post_norm")),
            scales_stream: true,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
