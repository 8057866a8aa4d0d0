//! Mistral 4: DeepSeek-V3's latent attention with queries scaled by position, and experts chosen by a softmax
//! (`transformers/models/mistral4`).

pub(crate) use crate::model::decoder::latent::LatentLayer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LatentKeys, LlamaBlock, LlamaModules, Modules, OfDense, SharedKeys, TableWidth, not_null,
};
use crate::model::facts::ModelType;

/// `mistral4`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "mistral4",
        classes: &["Mistral4ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 131_072,
        intermediate: 12_288,
        layers: 36,
        kv_heads: Some(32),
        max_positions: 1_048_576,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        let numbers = ["num_experts_per_tok", "n_group", "topk_group", "first_k_dense_replace"];
        not_null(s, &numbers)?;
        Biases::of_attention(s)
    },
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 128),
            chosen: (CHOSEN, 4),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::Softmax,
            }),
            gate_first: false,
            dense: DenseLayers::First(0),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            q_rank: Some(1024),
            kv_rank: 256,
            unrotated: 64,
            table: TableWidth::PartOfHead,
            ..LatentKeys::DEEPSEEK_V3
        }),
        block: LlamaBlock {
            scales_queries: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
