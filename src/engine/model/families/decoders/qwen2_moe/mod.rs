//! Qwen2 with experts in place of MLPs, one of which all tokens pass (`transformers/models/qwen2_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules, Modules,
    OfDense, SharedKeys, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};

/// `qwen2_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "qwen2_moe",
        classes: &["Qwen2MoeForCausalLM"],
    },
    catalogue: catalogue!["Qwen/Qwen1.5-MoE-A2.7B",],
    defaults: DecoderDefaults {
        hidden: 2048,
        intermediate: 5632,
        layers: 24,
        heads: 16,
        kv_heads: Some(16),
        ..DecoderDefaults::QWEN2
    },
    biases: |s| {
        Ok(Biases {
            qkv: s.flag("qkv_bias", true)?,
            ..Biases::NONE
        })
    },
    windows: Windows {
        switch: Some("use_sliding_window"),
        length: WindowLength::Or(4096),
        slides: |s, defaults, layer| Ok((layer + 1) % 2 != 0 && !Windows::past_full_layers(s, defaults, layer)?),
    },
    modules: Modules::Llama(LlamaModules {
        both_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 60),
            chosen: (CHOSEN, 4),
            intermediate: ("moe_intermediate_size", 1408),
            weights: ChosenWeights::MaybeNormalised(false),
            gate_first: true,
            dense: DenseLayers::Listed,
            shared: SharedKeys::Gated("shared_expert_intermediate_size", 5632),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
