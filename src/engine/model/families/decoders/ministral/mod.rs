//! Ministral: Mistral whose layers slide or see all (`transformers/models/ministral`).

use crate::model::decoder::{Biases, DecoderDefaults, DecoderFamily, LlamaModules, Modules, WindowLength, Windows};
use crate::model::facts::ModelType;

/// `ministral`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "ministral",
        classes: &["MinistralForCausalLM"],
    },
    defaults: DecoderDefaults {
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 131_072,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.required("head_dim", "a number: transformers 5.17 fails without one")?;
        Ok(Biases::NONE)
    },
    windows: Windows::of_every_layer(WindowLength::Or(4096)),
    modules: Modules::Llama(LlamaModules { ..LlamaModules::LLAMA }),
    ..DecoderFamily::USUAL
};
