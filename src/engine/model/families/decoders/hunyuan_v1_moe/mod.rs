//! HunYuan dense with experts beside each MLP (`transformers/models/hunyuan_v1_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use super::hunyuan_v1_dense;
use crate::model::decoder::{
    ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock, LlamaModules, Modules, OfDense,
    QueryNorms, SharedKeys, not_null,
};
use crate::model::facts::ModelType;

/// `hunyuan_v1_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "hunyuan_v1_moe",
        classes: &["HunYuanMoEV1ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 290_943,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        not_null(s, &["num_experts", "moe_topk"])?;
        hunyuan_v1_dense::checked_biases(s)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 1),
            chosen: (["moe_topk", "num_experts_per_tok"], 1),
            intermediate: ("intermediate_size", 11_008),
            weights: ChosenWeights::NormalisedProduct,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Beside,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            query_norms: QueryNorms::RotatedHeads(["query_layernorm", "key_layernorm"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
