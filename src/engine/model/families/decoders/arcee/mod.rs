//! Arcee: Llama with an MLP without a gate (`transformers/models/arcee`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules,
};
use crate::model::facts::ModelType;

/// `arcee`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "arcee",
        classes: &["ArceeForCausalLM"],
    },
    defaults: DecoderDefaults {
        hidden: 2560,
        intermediate: 18_432,
        max_positions: 4096,
        activation: Activation::Relu2,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
