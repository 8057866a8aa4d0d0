//! InternLM3: Llama's forward (`transformers/models/internlm3`, since transformers 5.18).

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily};
use crate::model::facts::ModelType;

/// `internlm3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("internlm3", &["InternLM3ForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 128_512,
        intermediate: 10_240,
        layers: 48,
        kv_heads: Some(2),
        head_dim: Some(128),
        max_positions: 32_768,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let older = |newer: &'static str, older: &'static str| s.flag(if s.has(newer) { newer } else { older }, false);
        let attention = older("attention_bias", "qkv_bias")?;
        let mlp = older("mlp_bias", "bias")?;
        if attention != mlp {
            return Err(s.wrong(
                "mlp_bias",
                &mlp.into(),
                "the same as attention_bias: transformers refuses others",
            ));
        }
        Ok(Biases {
            qkv: attention,
            output: attention,
            mlp,
        })
    },
    ..DecoderFamily::USUAL
};
