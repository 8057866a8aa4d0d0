//! Ministral: Mistral whose layers slide or see all (`transformers/models/ministral`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaModules, Modules, SoftCaps, WindowLength, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `ministral`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "ministral",
        classes: &["MinistralForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |s| {
        s.required("head_dim", "a number: transformers 5.17 fails without one")?;
        Ok(Biases::NONE)
    },
    windows: Windows::of_every_layer(WindowLength::Or(4096)),
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules { ..LlamaModules::LLAMA }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
