//! OLMo: layer norms without parameters (`transformers/models/olmo`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, QueryNorms, Rotation,
    SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;
use crate::nn::NormKind;

/// `olmo`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo",
        classes: &["OlmoForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 50_304,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
    biases: |s| {
        s.only(
            "clip_qkv",
            "null: clipped queries, keys and values are not simulated",
            |_| false,
        )?;
        Biases::of_attention(s)
    },
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::WideLayer,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
