//! Aria's language model: Llama with experts that are multiplied one after the other (`transformers/models/aria`).

mod experts;

pub(crate) use experts::ExpertLayer;

use crate::model::decoder::{
    Biases, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LlamaModules, Modules,
    OfDense, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `aria_text`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "aria_text",
        classes: &["AriaTextForCausalLM"],
    },
    defaults: DecoderDefaults {
        intermediate: 4096,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(s, &["moe_num_experts", "moe_topk", "moe_num_shared_experts"])?;
        Biases::of_attention_and_mlp(s)
    },
    heads: HeadRule::Divides,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["moe_num_experts"; 2], 8),
            chosen: (["moe_topk"; 2], 2),
            intermediate: ("intermediate_size", 4096),
            weights: ChosenWeights::OfBlockInTurn,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Added("moe_num_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
