//! A.X-K1: DeepSeek-V3 with a norm after the experts (`transformers/models/axk1`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LatentKeys, LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `axk1`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "axk1",
        classes: &["AXK1ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 163_840,
        hidden: 7168,
        intermediate: 18_432,
        layers: 61,
        heads: 64,
        kv_heads: Some(64),
        max_positions: 32_768,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let keys = [
            "num_experts_per_tok",
            "n_group",
            "topk_group",
            "first_k_dense_replace",
            "v_head_dim",
            "q_lora_rank",
            "num_key_value_heads",
        ];
        not_null(s, &keys)?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 192),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 8,
                kept: 4,
                is_normalised: true,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::First(1),
            shared: SharedKeys::AddedAndNormed("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys::DEEPSEEK_V3),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
