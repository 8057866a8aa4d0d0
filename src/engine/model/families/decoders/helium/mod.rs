//! Helium: Llama's parameters; neighbouring elements of a head are rotated together.

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaModules, Modules, SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `helium`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "helium",
        classes: &["HeliumForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 48_000,
        hidden: 2560,
        intermediate: 7040,
        layers: 24,
        heads: 20,
        kv_heads: Some(20),
        head_dim: Some(128),
        max_positions: 4096,
        theta: 1e5,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Fills,
    biases: |s| {
        Ok(Biases {
            qkv: s.flag("attention_bias", false)?,
            output: false,
            mlp: s.flag("mlp_bias", false)?,
        })
    },
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules::LLAMA),
    stands_in: true,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Replaces,
};
