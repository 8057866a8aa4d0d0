//! Arcee: Llama with an MLP without a gate (`transformers/models/arcee`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules, SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `arcee`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "arcee",
        classes: &["ArceeForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        hidden: 2560,
        intermediate: 18_432,
        max_positions: 4096,
        activation: Activation::Relu2,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention_and_mlp,
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
