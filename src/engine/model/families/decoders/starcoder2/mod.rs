//! StarCoder 2: layer norms, and an MLP without a gate (`transformers/models/starcoder2`).

use crate::model::config::Activation;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::nn::NormKind;

/// `starcoder2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "starcoder2",
        classes: &["Starcoder2ForCausalLM"],
    },
    catalogue: catalogue!["bigcode/starcoder2-3b",],
    defaults: DecoderDefaults {
        vocab: 49_152,
        hidden: 3072,
        intermediate: 12_288,
        layers: 30,
        heads: 24,
        kv_heads: Some(2),
        max_positions: 4096,
        tie: true,
        activation: Activation::GeluTanh,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.only("embedding_dropout", "0: dropout of embeddings is not simulated", |v| {
            v.as_f64() == Some(0.0)
        })?;
        s.only(
            "residual_dropout",
            "0: dropout after projections is not simulated",
            |v| v.as_f64() == Some(0.0),
        )?;
        let bias = s.flag("use_bias", true)?;
        Ok(Biases {
            qkv: bias,
            output: bias,
            mlp: bias,
        })
    },
    windows: Windows::of_every_layer(WindowLength::Given),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        block: LlamaBlock {
            norm: NormKind::Layer,
            mlp: MlpKind::Plain(["c_fc", "c_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
