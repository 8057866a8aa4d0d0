//! Doge: attention whose mask is computed from the values, and residual connections with weights
//! (`transformers/models/doge`).

mod attention;
mod block;

pub(crate) use block::Layer;

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaModules, Modules, OwnSizes, WindowLength, Windows, not_null,
};
use crate::model::facts::ModelType;

/// `doge`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("doge", &["DogeForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 32_768,
        hidden: 1024,
        intermediate: 2048,
        heads: 8,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        s.only(
            "is_moe",
            "false: experts of one embedding each are not simulated",
            |v| v == false,
        )?;
        not_null(s, &["keep_window_size"])?;
        Biases::of_attention_and_mlp(s)
    },
    windows: Windows::of_every_layer(WindowLength::Given),
    residual_dropout: Some(("hidden_dropout", 0.0)),
    modules: Modules::Llama(LlamaModules {
        one_mask: true,
        refuses_flash: true,
        ..LlamaModules::LLAMA
    }),
    own: |s, _| {
        let kept = s.optional_count("keep_window_size", limits::POSITIONS)?;
        Ok(OwnSizes::KeptKeys(kept.unwrap_or(2048)))
    },
    ..DecoderFamily::USUAL
};
