//! Jais 2: Llama with layer norms, and an MLP without a gate (`transformers/models/jais2`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `jais2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "jais2",
        classes: &["Jais2ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 150_272,
        hidden: 3328,
        intermediate: 26_624,
        heads: 26,
        max_positions: 8192,
        activation: Activation::Relu2,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        let attention = s.flag("attention_bias", true)?;
        Ok(Biases {
            qkv: attention,
            output: attention,
            mlp: s.flag("mlp_bias", true)?,
        })
    },
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::Layer,
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
