//! HY-3: experts chosen by sigmoids, beside one that all tokens pass (`transformers/models/hy_v3`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock, LlamaModules,
    Modules, OfDense, QueryNorms, SharedKeys, SigmoidForm, not_null,
};
use crate::model::facts::ModelType;

/// `hy_v3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hy_v3",
        classes: &["HYV3ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 120_832,
        intermediate: 13_312,
        layers: 80,
        heads: 64,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 131_072,
        theta: 11_158_840.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let numbers = [
            "num_key_value_heads",
            "head_dim",
            "num_experts",
            "num_experts_per_tok",
            "num_shared_experts",
        ];
        not_null(s, &numbers)?;
        Biases::of_attention_and_mlp(s)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 192),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 1536),
            weights: ChosenWeights::Sigmoids(SigmoidForm {
                wide: true,
                in_place: false,
                corrects: false,
            }),
            gate_first: true,
            dense: DenseLayers::KindsOr(1),
            shared: SharedKeys::Combined("num_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            query_norms: QueryNorms::SplitHeads,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
