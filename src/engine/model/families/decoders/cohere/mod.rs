//! Cohere: attention and MLP side by side (`transformers/models/cohere`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, NormPlacement, Rotation,
};
use crate::model::facts::{ModelType, catalogue};
use crate::nn::NormKind;

/// `cohere`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "cohere",
        classes: &["CohereForCausalLM"],
    },
    catalogue: catalogue!["CohereForAI/c4ai-command-r-v01",],
    defaults: DecoderDefaults {
        vocab: 256_000,
        hidden: 8192,
        intermediate: 22_528,
        layers: 40,
        heads: 64,
        max_positions: 8192,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.only(
            "use_qk_norm",
            "false: norms of queries and keys are not simulated",
            |v| v.as_bool() != Some(true),
        )?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::PlainLayer,
            placement: NormPlacement::Shared,
            rotation: Rotation::InF32,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
