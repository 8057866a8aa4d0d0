//! Granite with experts in place of MLPs (`transformers/models/granitemoe`).

mod block;

pub(crate) use block::{Layer, Moe, SharedMlp};

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LateScale,
    LlamaBlock, LlamaModules, Modules, OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `granitemoe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "granitemoe",
        classes: &["GraniteMoeForCausalLM"],
    },
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Floors,
    biases: |s| {
        not_null(
            s,
            &[
                "num_local_experts",
                "num_experts_per_tok",
                "embedding_multiplier",
                "residual_multiplier",
                "logits_scaling",
            ],
        )?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        late_scale: LateScale::Replaces,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts"; 2], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 11_008),
            weights: ChosenWeights::OfChosenInF32,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            scales_stream: true,
            scales_logits: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
