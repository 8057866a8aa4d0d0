//! DeepSeek-V3.2: DeepSeek-V3 whose attention sees the keys that an indexer chooses (`transformers/models/deepseek_v32`).

pub(crate) use crate::model::decoder::sparse_latent::SparseLatentLayer;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    Indexers, LatentKeys, LatentRotation, LlamaModules, Modules, OfDense, OwnSizes, SharedKeys, TableWidth, Windows,
    not_null,
};
use crate::model::facts::ModelType;

/// `deepseek_v32`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("deepseek_v32", &["DeepseekV32ForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 129_280,
        hidden: 7168,
        intermediate: 18_432,
        layers: 61,
        heads: 128,
        kv_heads: Some(128),
        max_positions: 163_840,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        Biases::of_attention(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        refuses_flash: true,
        always_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 256),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 2048),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 8,
                kept: 4,
                is_normalised: true,
                scores: GroupScores::SigmoidsCorrectedInF32,
            }),
            gate_first: false,
            dense: DenseLayers::Kinds(3),
            shared: SharedKeys::Added("n_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        latent: Some(&LatentKeys {
            rotation: Some(LatentRotation::Pairs),
            table: TableWidth::Rotated,
            ..LatentKeys::DEEPSEEK_V3
        }),
        ..LlamaModules::LLAMA
    }),
    own: |s, c| {
        let rotated = c.latent.map_or(0, |latent| latent.rotated());
        Ok(OwnSizes::Indexers(Indexers::read(s, [64, 128, 2048], rotated)?))
    },
    ..DecoderFamily::USUAL
};

/// Refuses what the class does not build.
pub(crate) fn check(s: &Section) -> Result<(), ModelError> {
    not_null(s, &["n_group", "topk_group"])?;
    check_sparse(s)
}

/// Refuses what the class does not build, but for groups of experts.
pub(crate) fn check_sparse(s: &Section) -> Result<(), ModelError> {
    not_null(
        s,
        &[
            "num_experts_per_tok",
            "first_k_dense_replace",
            "n_shared_experts",
            "q_lora_rank",
            "kv_lora_rank",
            "v_head_dim",
            "index_topk",
            "index_head_dim",
            "index_n_heads",
        ],
    )?;
    // It would replace the number of experts.
    let experts = s.value("n_routed_experts");
    s.only("num_experts", "as many as `n_routed_experts`", |n| experts == Some(n))?;
    s.only("layer_types", "all \"deepseek_sparse_attention\"", |kinds| {
        kinds
            .as_array()
            .is_some_and(|kinds| kinds.iter().all(|kind| kind == "deepseek_sparse_attention"))
    })
}
