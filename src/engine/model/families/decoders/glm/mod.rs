//! GLM-4: RoPE rotates alternating elements of half a head (`transformers/models/glm`).

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, Rotation,
};
use crate::model::facts::{ModelType, catalogue};

/// `glm`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm",
        classes: &["GlmForCausalLM"],
    },
    catalogue: catalogue!["THUDM/glm-4-9b-chat",],
    defaults: DecoderDefaults {
        vocab: 151_552,
        intermediate: 13_696,
        layers: 40,
        kv_heads: Some(2),
        head_dim: Some(128),
        max_positions: 131_072,
        partial_rotary: 0.5,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let vocab = s.size("vocab_size", 151_552, limits::VOCAB)?;
        if !s.has("pad_token_id") && vocab <= 151_329 {
            return Err(s.wrong(
                "vocab_size",
                &vocab.into(),
                "more than 151329, the default of pad_token_id",
            ));
        }
        if s.has("head_dim") {
            s.required("head_dim", "a number: transformers 5.17 fails without one")?;
        }
        Ok(Biases {
            qkv: s.flag("attention_bias", true)?,
            output: false,
            mlp: false,
        })
    },
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        block: LlamaBlock {
            mlp: MlpKind::Fused,
            rotation: Rotation::AlternatingPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
