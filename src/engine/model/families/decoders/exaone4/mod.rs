//! EXAONE 4: norms after attention and MLP, and positions in sliding blocks only (`transformers/models/exaone4`).

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, NormPlacement, QueryNorms, WindowLength,
    Windows, some_slide,
};
use crate::model::facts::ModelType;

/// `exaone4`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "exaone4",
        classes: &["Exaone4ForCausalLM"],
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
        block: LlamaBlock {
            placement: NormPlacement::After,
            query_norms: QueryNorms::SplitHeads,
            rotates_only_sliding: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
