//! Cohere 2 with experts in place of most MLPs (`transformers/models/cohere2_moe`).

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock, LlamaModules,
    Modules, NormPlacement, OfDense, Rotation, SharedKeys, WindowLength, Windows, slides_with_a_number, some_slide,
};
use crate::model::facts::ModelType;
use crate::nn::NormKind;

/// Key of the pattern in which the first layers, which have MLPs, slide.
const PREFIX_PATTERN: &str = "prefix_dense_sliding_window_pattern";

/// `cohere2_moe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "cohere2_moe",
        classes: &["Cohere2MoeForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 256_000,
        hidden: 8192,
        intermediate: 22_528,
        layers: 40,
        heads: 64,
        head_dim: Some(128),
        max_positions: 8192,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        some_slide(s)?;
        slides_with_a_number(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(4096),
        slides: |s, _, layer| {
            let first = s.optional_count("first_k_dense_replace", limits::LAYERS)?.unwrap_or(0);
            let (pattern, place) = match layer < first {
                true => (s.size_or(PREFIX_PATTERN, 1, limits::LAYERS)?, layer),
                false => (s.size_or("sliding_window_pattern", 4, limits::LAYERS)?, layer - first),
            };
            Ok((place + 1) % pattern != 0)
        },
    },
    modules: Modules::Llama(LlamaModules {
        rms_key: Some("rms_norm_eps"),
        experts: Some(&ExpertKeys {
            experts: (["num_experts"; 2], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 22_528),
            weights: ChosenWeights::Selected,
            gate_first: true,
            dense: DenseLayers::Kinds(0),
            shared: SharedKeys::Averaged("num_shared_experts"),
            of_dense: OfDense::Prefix(["prefix_dense_intermediate_size", PREFIX_PATTERN]),
        }),
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
