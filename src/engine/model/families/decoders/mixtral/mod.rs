//! Mixtral: Mistral with experts in place of MLPs (`transformers/models/mixtral`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules, Modules,
    OfDense, SharedKeys, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};

/// `mixtral`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "mixtral",
        classes: &["MixtralForCausalLM"],
    },
    catalogue: catalogue!["mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x22B-v0.1",],
    defaults: DecoderDefaults {
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |_| Ok(Biases::NONE),
    windows: Windows::of_every_layer(WindowLength::Given),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 14_336),
            weights: ChosenWeights::NormalisedWide,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
