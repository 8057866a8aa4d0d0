//! OLMo 2: norms after attention and MLP, and of whole queries and keys (`transformers/models/olmo2`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement, QueryNorms,
    Rotation,
};
use crate::model::facts::{ModelType, catalogue};
use crate::nn::{NormKind, RmsScale};

/// `olmo2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo2",
        classes: &["Olmo2ForCausalLM"],
    },
    catalogue: catalogue!["allenai/OLMo-2-1124-7B", "allenai/OLMo-2-1124-13B",],
    defaults: DecoderDefaults {
        vocab: 50_304,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: Biases::of_attention,
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            placement: NormPlacement::After,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
