//! IQuest-Coder: Llama's forward (`transformers/models/iquestcoder`, since transformers 5.18).

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily};
use crate::model::facts::ModelType;

/// `iquestcoder`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("iquestcoder", &["IQuestCoderForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 76_800,
        hidden: 5120,
        intermediate: 27_648,
        layers: 80,
        heads: 40,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.only("clip_qkv", "null: transformers refuses others", |_| false)?;
        s.only("use_sliding_window", "false: transformers refuses windows", |v| {
            v.as_bool() == Some(false)
        })?;
        Biases::of_attention_and_mlp(s)
    },
    ..DecoderFamily::USUAL
};
