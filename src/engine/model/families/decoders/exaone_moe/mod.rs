//! EXAONE MoE: EXAONE 4's attention, and experts chosen as DeepSeek does (`transformers/models/exaone_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    LlamaBlock, LlamaModules, Modules, OfDense, QueryNorms, SharedKeys, WindowLength, Windows, some_slide,
};
use crate::model::facts::ModelType;

/// `exaone_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "exaone_moe",
        classes: &["ExaoneMoeForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 102_400,
        intermediate: 16_384,
        kv_heads: Some(32),
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        some_slide(s)?;
        Ok(Biases::NONE)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |s, _, layer| {
            let pattern = s.size_or("sliding_window_pattern", 4, limits::LAYERS)?;
            Ok::<_, ModelError>((layer + 1) % pattern != 0)
        },
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts"; 2], 64),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 1024),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::Kinds(1),
            shared: SharedKeys::Added("num_shared_experts", 1),
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            query_norms: QueryNorms::SplitHeads,
            rotates_only_sliding: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
