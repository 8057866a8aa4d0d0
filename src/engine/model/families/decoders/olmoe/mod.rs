//! OLMoE: experts, and norms of whole queries and keys (`transformers/models/olmoe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LlamaBlock,
    LlamaModules, Modules, OfDense, QueryNorms, SharedKeys,
};
use crate::model::facts::{ModelType, catalogue};

/// `olmoe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmoe",
        classes: &["OlmoeForCausalLM"],
    },
    catalogue: catalogue!["allenai/OLMoE-1B-7B-0924",],
    defaults: DecoderDefaults {
        vocab: 50_304,
        hidden: 2048,
        intermediate: 2048,
        layers: 16,
        heads: 16,
        max_positions: 4096,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        s.only(
            "clip_qkv",
            "null: clipped queries, keys and values are not simulated",
            |_| false,
        )?;
        Biases::of_attention(s)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 64),
            chosen: (CHOSEN, 8),
            intermediate: ("intermediate_size", 2048),
            weights: ChosenWeights::MaybeNormalised(false),
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            query_norms: QueryNorms::Whole,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
