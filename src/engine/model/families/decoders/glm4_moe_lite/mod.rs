//! GLM-4.7-Flash: DeepSeek-V3's attention and GLM-4.5's experts (`transformers/models/glm4_moe_lite`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LatentKeys, LlamaModules, Modules, OfDense, SharedKeys,
};
use crate::model::facts::{ModelType, catalogue};

/// `glm4_moe_lite`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm4_moe_lite",
        classes: &["Glm4MoeLiteForCausalLM"],
    },
    catalogue: catalogue!["zai-org/GLM-4.7-Flash",],
    defaults: DecoderDefaults {
        vocab: 154_880,
        hidden: 2048,
        intermediate: 10_240,
        layers: 47,
        heads: 20,
        kv_heads: Some(20),
        max_positions: 202_752,
        ..DecoderDefaults::LLAMA
    },
    biases: Biases::of_attention,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 64),
            chosen: (CHOSEN, 4),
            intermediate: ("moe_intermediate_size", 1536),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::SigmoidsCorrectedInF32,
            }),
            gate_first: false,
            dense: DenseLayers::KindsOr(1),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            q_rank: Some(768),
            unrotated: 192,
            values: Some(256),
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
