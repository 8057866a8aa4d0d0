//! Solar Open: Llama's attention with GLM-4.5's experts (`transformers/models/solar_open`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::rope_tables::rotates_whole_heads;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `solar_open`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "solar_open",
        classes: &["SolarOpenForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 196_608,
        layers: 48,
        heads: 64,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        theta: 1e6,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(
            s,
            &[
                "num_experts_per_tok",
                "num_key_value_heads",
                "n_shared_experts",
                "head_dim",
            ],
        )?;
        rotates_whole_heads(s)?;
        Ok(Biases {
            qkv: s.flag("attention_bias", false)?,
            ..Biases::NONE
        })
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 1280),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::SigmoidsCorrectedInF32,
            }),
            gate_first: false,
            dense: DenseLayers::Never,
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
