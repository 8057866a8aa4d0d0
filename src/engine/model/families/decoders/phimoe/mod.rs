//! PhiMoE: layer norms, and experts drawn by a sparse mixer (`transformers/models/phimoe`).

mod moe;

pub(crate) use moe::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LlamaBlock,
    LlamaModules, Modules, OfDense, SharedKeys, WindowLength, Windows, not_null,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `phimoe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "phimoe",
        classes: &["PhimoeForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 32_064,
        intermediate: 6400,
        kv_heads: Some(8),
        max_positions: 131_072,
        theta: 1e6,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        let noise = "0: noise on the tokens of experts is not simulated";
        s.only("input_jitter_noise", noise, |v| v.as_f64() == Some(0.0))?;
        not_null(s, &["num_local_experts", "input_jitter_noise", "router_jitter_noise"])?;
        Biases::of_attention(s)
    },
    windows: Windows::of_every_layer(WindowLength::Given),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        recomputes_rotary: true,
        head_bias_key: Some("lm_head_bias"),
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts"; 2], 16),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 6400),
            weights: ChosenWeights::OfBlock,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            norm: NormKind::Layer,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
