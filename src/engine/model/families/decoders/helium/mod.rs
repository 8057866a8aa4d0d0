//! Helium: Llama's parameters; neighbouring elements of a head are rotated together.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, HeadRule};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `helium`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "helium",
        classes: &["HeliumForCausalLM"],
    },
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
    stands_in: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
