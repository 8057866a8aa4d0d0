//! Youtu-LLM: Llama with DeepSeek-V3's attention (`transformers/models/youtu`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LatentKeys, LlamaModules, Modules, not_null};
use crate::model::facts::ModelType;

/// `youtu`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "youtu",
        classes: &["YoutuForCausalLM"],
    },
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
    biases: |s| {
        not_null(s, &["v_head_dim"])?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        latent: Some(&LatentKeys::DEEPSEEK_V3),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
