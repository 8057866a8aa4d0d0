//! OLMo: layer norms without parameters (`transformers/models/olmo`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, QueryNorms, Rotation,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `olmo`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo",
        classes: &["OlmoForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 50_304,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.only(
            "clip_qkv",
            "null: clipped queries, keys and values are not simulated",
            |_| false,
        )?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::WideLayer,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
