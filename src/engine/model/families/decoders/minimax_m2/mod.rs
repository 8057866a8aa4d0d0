//! MiniMax-M2: experts chosen by sigmoids, positions on a part of each head (`transformers/models/minimax_m2`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock, LlamaModules,
    Modules, OfDense, QueryNorms, Rotation, SharedKeys, SigmoidForm, not_null,
};
use crate::model::facts::ModelType;

/// `minimax_m2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "minimax_m2",
        classes: &["MiniMaxM2ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 200_064,
        hidden: 3072,
        intermediate: 1536,
        layers: 62,
        heads: 48,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 196_608,
        theta: 5e6,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let numbers = [
            "num_key_value_heads",
            "head_dim",
            "num_local_experts",
            "num_experts_per_tok",
        ];
        not_null(s, &numbers)?;
        Ok(Biases::NONE)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("intermediate_size", 1536),
            weights: ChosenWeights::Sigmoids(SigmoidForm {
                wide: false,
                in_place: true,
                corrects: false,
            }),
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            query_norms: QueryNorms::Whole,
            rotation: Rotation::FreedPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
