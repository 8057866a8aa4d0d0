//! OLMo 2: norms after attention and MLP, and of whole queries and keys (`transformers/models/olmo2`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, QueryNorms, SoftCaps, Windows,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;
use crate::nn::RmsScale;

/// `olmo2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo2",
        classes: &["Olmo2ForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 50_304,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention,
    windows: Windows::NEVER,
    qk_norm: true,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm_scale: RmsScale::WeightFirst,
            norms_after: true,
            query_norms: QueryNorms::OfAll,
            turns_in_f32: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
