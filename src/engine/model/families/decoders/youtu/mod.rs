//! Youtu-LLM: Llama with DeepSeek-V3's attention (`transformers/models/youtu`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LatentKeys, LlamaModules, Modules, SoftCaps, Windows, not_null,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `youtu`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "youtu",
        classes: &["YoutuForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 128_256,
        hidden: 2048,
        intermediate: 6144,
        heads: 16,
        kv_heads: Some(16),
        max_positions: 131_072,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |s| {
        not_null(s, &["v_head_dim"])?;
        Biases::of_attention(s)
    },
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        latent: Some(&LatentKeys::DEEPSEEK_V3),
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
