//! DeepSeek-V3: latent attention, and experts chosen among the best groups (`transformers/models/deepseek_v3`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LatentKeys, LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `deepseek_v3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "deepseek_v3",
        classes: &["DeepseekV3ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 129_280,
        hidden: 7168,
        intermediate: 18_432,
        layers: 61,
        heads: 128,
        kv_heads: Some(128),
        max_positions: 4096,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(
            s,
            &[
                "num_experts_per_tok",
                "n_group",
                "topk_group",
                "first_k_dense_replace",
                "v_head_dim",
            ],
        )?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 8,
                kept: 4,
                is_normalised: true,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::First(3),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys::DEEPSEEK_V3),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
