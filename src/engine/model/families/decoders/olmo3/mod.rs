//! OLMo 3: OLMo 2 with sliding blocks, whose rotary embedding is their own (`transformers/models/olmo3`).

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, NormPlacement, QueryNorms, Rotation,
    WindowLength, Windows, rope_tables, slides_with_a_number, some_slide,
};
use crate::model::facts::{ModelType, catalogue};
use crate::nn::{NormKind, RmsScale};

/// `olmo3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "olmo3",
        classes: &["Olmo3ForCausalLM"],
    },
    catalogue: catalogue!["allenai/Olmo-3-7B-Instruct",],
    defaults: DecoderDefaults {
        vocab: 50_304,
        theta: 500_000.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        some_slide(s)?;
        slides_with_a_number(s)?;
        rope_tables::are_static(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |_, _, layer| Ok((layer + 1) % 4 != 0),
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        rotary_by_kind: true,
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            placement: NormPlacement::After,
            query_norms: QueryNorms::Whole,
            rotation: Rotation::ByF32,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
