//! GLM-4-0414: GLM-4 with norms around attention and MLP (`transformers/models/glm4`).

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, NormPlacement, Rotation,
};
use crate::model::facts::{ModelType, catalogue};

/// `glm4`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm4",
        classes: &["Glm4ForCausalLM"],
    },
    catalogue: catalogue!["zai-org/GLM-4-9B-0414",],
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
            placement: NormPlacement::Around(["post_self_attn_layernorm", "post_mlp_layernorm"], None),
            mlp: MlpKind::Fused,
            rotation: Rotation::AlternatingPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
