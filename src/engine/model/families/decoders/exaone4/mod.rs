//! EXAONE 4: norms after attention and MLP, and positions in sliding blocks only (`transformers/models/exaone4`).

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement, QueryNorms,
    SoftCaps, WindowLength, Windows, some_slide,
};
use crate::model::facts::ModelType;
use crate::model::libraries::Liger;

/// `exaone4`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "exaone4",
        classes: &["Exaone4ForCausalLM"],
    },
    catalogue: &[],
    defaults: DecoderDefaults {
        vocab: 102_400,
        intermediate: 16_384,
        kv_heads: Some(32),
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Free,
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
    newer_activation_key: None,
    residual_dropout: None,
    soft_caps: SoftCaps::None,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            placement: NormPlacement::After,
            query_norms: QueryNorms::SplitHeads,
            only_sliding_turn: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    stands_in: false,
    tensor_parallel: false,
    pipeline: false,
    liger: Liger::Unknown,
};
