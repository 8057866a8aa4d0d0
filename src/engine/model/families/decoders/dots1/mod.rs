//! dots.llm1: Qwen3 with experts in place of MLPs, chosen as DeepSeek does (`transformers/models/dots1`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    HeadRule, LlamaModules, Modules, OfDense, SharedKeys, WindowLength, Windows, not_null,
};
use crate::model::facts::ModelType;

/// `dots1`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "dots1",
        classes: &["Dots1ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 152_064,
        hidden: 4608,
        intermediate: 10_944,
        layers: 62,
        kv_heads: Some(32),
        max_window_layers: 62,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        for key in ["n_routed_experts", "n_shared_experts", "num_experts_per_tok"] {
            s.required(key, "a number: transformers 5.17 fails without one")?;
        }
        not_null(
            s,
            &[
                "num_key_value_heads",
                "first_k_dense_replace",
                "n_group",
                "topk_group",
                "max_window_layers",
            ],
        )?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: Windows::past_full_layers,
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 6),
            intermediate: ("moe_intermediate_size", 1408),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: false,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::First(0),
            shared: SharedKeys::Added("n_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
