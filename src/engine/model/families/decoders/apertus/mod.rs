//! Apertus: Llama with xIELU in place of a gate, and norms of queries and keys (`transformers/models/apertus`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules, NormPlacement,
    QueryNorms,
};
use crate::model::facts::ModelType;

/// `apertus`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "apertus",
        classes: &["ApertusForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 131_072,
        intermediate: 14_336,
        max_positions: 65_536,
        activation: Activation::Xielu,
        theta: 12e6,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: Biases::of_attention,
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            placement: NormPlacement::BeforeAs(["attention_layernorm", "feedforward_layernorm"]),
            query_norms: QueryNorms::SplitHeads,
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
