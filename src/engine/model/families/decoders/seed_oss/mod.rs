//! Seed-OSS: Llama with biases on queries, keys and values, and dropout after attention and MLP.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `seed_oss`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "seed_oss",
        classes: &["SeedOssForCausalLM"],
    },
    catalogue: catalogue!["ByteDance-Seed/Seed-OSS-36B-Instruct",],
    defaults: DecoderDefaults {
        vocab: 155_136,
        intermediate: 27_648,
        layers: 64,
        heads: 80,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 524_288,
        attention_dropout: 0.1,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        Ok(Biases {
            qkv: s.flag("attention_bias", true)?,
            output: s.flag("attention_out_bias", false)?,
            mlp: s.flag("mlp_bias", false)?,
        })
    },
    residual_dropout: Some(("residual_dropout", 0.1)),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
