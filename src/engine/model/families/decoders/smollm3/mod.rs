//! SmolLM3: Llama's parameters; every fourth block has no rotary positions.

use crate::model::config::limits;
use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, WindowLength, Windows};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `smollm3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "smollm3",
        classes: &["SmolLM3ForCausalLM"],
    },
    catalogue: catalogue!["HuggingFaceTB/SmolLM3-3B",],
    defaults: DecoderDefaults {
        vocab: 128_256,
        hidden: 2048,
        layers: 36,
        heads: 16,
        kv_heads: Some(4),
        max_positions: 32_768,
        tie: true,
        theta: 2e6,
        ..DecoderDefaults::LLAMA
    },
    biases: Biases::of_attention_and_mlp,
    windows: Windows {
        switch: Some("use_sliding_window"),
        length: WindowLength::Given,
        slides: |s, _, layer| {
            let every = s.size_or("no_rope_layer_interval", 4, limits::LAYERS)?;
            Ok((layer + 1).is_multiple_of(every))
        },
    },
    stands_in: true,
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
