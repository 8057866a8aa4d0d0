//! GLM-4.5: GLM-4 with experts in place of MLPs (`transformers/models/glm4_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    HeadRule, LlamaBlock, LlamaModules, Modules, OfDense, QueryNorms, Rotation, SharedKeys, not_null,
};
use crate::model::facts::{ModelType, catalogue};

/// Experts of GLM-4.5 and GLM-4.5V.
pub(crate) const EXPERTS: ExpertKeys = ExpertKeys {
    experts: (["n_routed_experts", "num_local_experts"], 128),
    chosen: (CHOSEN, 8),
    intermediate: ("moe_intermediate_size", 1408),
    weights: ChosenWeights::Grouped(GroupKeys {
        groups: 1,
        kept: 1,
        is_normalised: true,
        scores: GroupScores::SigmoidsCorrectedInF32,
    }),
    gate_first: false,
    dense: DenseLayers::First(1),
    shared: SharedKeys::Added("n_shared_experts", 1),
    of_dense: OfDense::Usual,
};

/// `glm4_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "glm4_moe",
        classes: &["Glm4MoeForCausalLM"],
    },
    catalogue: catalogue!["zai-org/GLM-4.5-Air", "zai-org/GLM-4.5",],
    defaults: DecoderDefaults {
        vocab: 151_552,
        intermediate: 10_944,
        layers: 46,
        heads: 96,
        kv_heads: Some(8),
        max_positions: 131_072,
        partial_rotary: 0.5,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        not_null(
            s,
            &[
                "num_experts_per_tok",
                "num_key_value_heads",
                "n_shared_experts",
                "first_k_dense_replace",
            ],
        )?;
        Ok(Biases {
            qkv: s.flag("attention_bias", false)?,
            ..Biases::NONE
        })
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        query_norms_key: Some("use_qk_norm"),
        experts: Some(&EXPERTS),
        block: LlamaBlock {
            query_norms: QueryNorms::SplitHeads,
            rotation: Rotation::FreedPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
