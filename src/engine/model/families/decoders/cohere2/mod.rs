//! Cohere 2: Cohere with sliding blocks, of which only these have positions (`transformers/models/cohere2`).

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, HeadRule, LlamaBlock, LlamaModules, Modules, NormPlacement, Rotation,
    WindowLength, Windows, slides_with_a_number, some_slide,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// `cohere2`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "cohere2",
        classes: &["Cohere2ForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 256_000,
        hidden: 8192,
        intermediate: 22_528,
        layers: 40,
        heads: 64,
        max_positions: 8192,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Divides,
    biases: |s| {
        some_slide(s)?;
        slides_with_a_number(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |s, _, layer| {
            let pattern = s.size_or("sliding_window_pattern", 4, limits::LAYERS)?;
            Ok((layer + 1) % pattern != 0)
        },
    },
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            norm: NormKind::PlainLayer,
            placement: NormPlacement::Shared,
            rotation: Rotation::InF32,
            scales_logits: true,
            rotates_only_sliding: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
