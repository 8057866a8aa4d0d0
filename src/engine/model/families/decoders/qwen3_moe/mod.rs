//! Qwen3 with experts in place of MLPs (`transformers/models/qwen3_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules, Modules,
    OfDense, SharedKeys, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};

/// `qwen3_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "qwen3_moe",
        classes: &["Qwen3MoeForCausalLM"],
    },
    catalogue: catalogue![
        "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-30B-A3B-Instruct-2507",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        "Qwen/Qwen3-235B-A22B",
        "Qwen/Qwen3-Coder-480B-A35B-Instruct",
    ],
    defaults: DecoderDefaults {
        hidden: 2048,
        intermediate: 6144,
        layers: 24,
        kv_heads: Some(4),
        ..DecoderDefaults::QWEN2
    },
    biases: Biases::of_attention,
    windows: Windows {
        switch: Some("use_sliding_window"),
        ..Windows::of_every_layer(WindowLength::Or(4096))
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 768),
            weights: ChosenWeights::MaybeNormalised(false),
            gate_first: false,
            dense: DenseLayers::Listed,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
