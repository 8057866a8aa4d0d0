//! Granite with experts in place of MLPs (`transformers/models/granitemoe`).

mod block;

pub(crate) use block::Layer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LateScale,
    LlamaBlock, LlamaModules, Modules, OfDense, SharedKeys, SoftCaps, Windows, not_null,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `granitemoe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "granitemoe",
        classes: &["GraniteMoeForCausalLM"],
    },
    catalogue: &[],
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
    windows: Windows::NEVER,
    qk_norm: false,
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
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
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
