//! ERNIE 4.5 with experts in place of MLPs (`transformers/models/ernie4_5_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::decoder::{
    Biases, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, HeadRule, LlamaBlock, LlamaModules,
    Modules, OfDense, Rotation, SharedKeys, not_null,
};
use crate::model::facts::{ModelType, catalogue};

/// `ernie4_5_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "ernie4_5_moe",
        classes: &["Ernie4_5_MoeForCausalLM"],
    },
    catalogue: catalogue!["baidu/ERNIE-4.5-21B-A3B-PT",],
    defaults: DecoderDefaults {
        vocab: 103_424,
        hidden: 2560,
        intermediate: 12_288,
        layers: 28,
        heads: 20,
        kv_heads: Some(4),
        max_positions: 131_072,
        tie: true,
        theta: 5e5,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        let numbers = [
            "moe_k",
            "moe_num_experts",
            "moe_num_shared_experts",
            "moe_layer_start_index",
            "moe_layer_end_index",
            "moe_layer_interval",
            "num_key_value_heads",
        ];
        not_null(s, &numbers)?;
        let all = s.flag("use_bias", false)?;
        Ok(Biases {
            qkv: all,
            output: all,
            mlp: all,
        })
    },
    modules: Modules::Llama(LlamaModules {
        head_bias_key: Some("use_bias"),
        experts: Some(&ExpertKeys {
            experts: (["moe_num_experts", "num_experts"], 64),
            chosen: (["moe_k", "num_experts_per_tok"], 6),
            intermediate: ("moe_intermediate_size", 1536),
            weights: ChosenWeights::Corrected,
            gate_first: true,
            dense: DenseLayers::Outside,
            shared: SharedKeys::AddedFirst("moe_num_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            rotation: Rotation::AlternatingInF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
