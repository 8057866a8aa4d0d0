//! HyperCLOVA X: Llama with scaled embeddings, residuals and logits, and norms around its parts (`transformers/models/hyperclovax`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement, SoftCaps,
    Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `hyperclovax`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hyperclovax",
        classes: &["HyperCLOVAXForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        max_positions: 2048,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: Biases::of_attention_and_mlp,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            placement: NormPlacement::Around(["post_norm1", "post_norm2"], Some("use_post_norm")),
            scales_stream: true,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
