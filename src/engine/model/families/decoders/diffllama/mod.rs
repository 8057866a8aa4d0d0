//! DiffLlama: Llama with the difference of two attentions (`transformers/models/diffllama`).

mod block;

pub(crate) use block::Layer;

use crate::model::config::limits;
use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, HeadRule};
use crate::model::facts::ModelType;

/// `diffllama`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "diffllama",
        classes: &["DiffLlamaForCausalLM"],
    },
    defaults: DecoderDefaults {
        hidden: 2048,
        intermediate: 8192,
        layers: 16,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        s.only("attention_dropout", "0: transformers refuses dropout", |v| {
            v.as_f64() == Some(0.0)
        })?;
        for key in ["num_attention_heads", "num_key_value_heads"] {
            if let Some(heads) = s.optional_size(key, limits::HEADS)? {
                s.divide((key, heads), ("attentions", 2))?;
            }
        }
        Biases::of_attention(s)
    },
    ..DecoderFamily::USUAL
};
