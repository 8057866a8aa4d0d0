//! Phi-3 and Phi-4: fused query-key-value and gate-up projections.

mod block;

pub(crate) use block::Layer;

use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, MlpKind, Modules, WindowLength, Windows,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;

/// `phi3`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "phi3",
        classes: &["Phi3ForCausalLM"],
    },
    catalogue: catalogue![
        "microsoft/Phi-3-mini-4k-instruct",
        "microsoft/phi-4",
        "microsoft/Phi-4-mini-instruct",
    ],
    defaults: DecoderDefaults {
        vocab: 32_064,
        hidden: 3072,
        intermediate: 8192,
        max_positions: 4096,
        ..DecoderDefaults::LLAMA
    },
    biases: |_| Ok(Biases::NONE),
    windows: Windows::of_every_layer(WindowLength::Given),
    residual_dropout: Some(("resid_pdrop", 0.0)),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        partial_rotary: true,
        block: LlamaBlock {
            mlp: MlpKind::Fused,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    liger: Liger::Replaces,
    ..DecoderFamily::USUAL
};
