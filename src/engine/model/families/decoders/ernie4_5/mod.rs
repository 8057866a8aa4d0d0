//! ERNIE 4.5: Llama's parameters; queries and keys are rotated in fp32.

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `ernie4_5`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "ernie4_5",
        classes: &["Ernie4_5ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 103_424,
        hidden: 1024,
        intermediate: 3072,
        layers: 18,
        heads: 16,
        kv_heads: Some(2),
        head_dim: Some(128),
        max_positions: 131_072,
        tie: true,
        theta: 5e5,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let all = s.flag("use_bias", false)?;
        Ok(Biases {
            qkv: all,
            output: all,
            mlp: all,
        })
    },
    stands_in: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
