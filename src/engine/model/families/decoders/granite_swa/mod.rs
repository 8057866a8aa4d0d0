//! Granite with sliding windows and sinks (`transformers/models/granite_swa`).

mod attention;

pub(crate) use attention::{Layer, SinkAttention};

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, DecoderDefaults, DecoderFamily, LlamaBlock, LlamaModules, Modules, WindowLength, Windows, not_null,
    slides_with_a_number,
};
use crate::model::facts::ModelType;

/// `granite_swa`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("granite_swa", &["GraniteSWAForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 100_352,
        hidden: 2560,
        intermediate: 8192,
        layers: 24,
        heads: 20,
        kv_heads: Some(4),
        max_positions: 8192,
        tie: true,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        one_base(s)?;
        Biases::of_attention_and_mlp(s)
    },
    windows: WINDOWS,
    modules: Modules::Llama(MODULES),
    ..DecoderFamily::USUAL
};

/// Windows in all layers but each fourth.
pub(crate) const WINDOWS: Windows = Windows {
    switch: None,
    length: WindowLength::Or(128),
    slides: |_, _, layer| Ok(layer % 4 != 0),
};

/// What both families with sliding windows have.
pub(crate) const MODULES: LlamaModules = LlamaModules {
    both_masks: true,
    is_eager: true,
    has_spare_rotary: true,
    block: LlamaBlock {
        scales_stream: true,
        scales_logits: true,
        ..LlamaModules::LLAMA.block
    },
    ..LlamaModules::LLAMA
};

/// Checks that one rotary embedding serves all layers, and that factors are numbers.
pub(crate) fn one_base(s: &Section) -> Result<(), ModelError> {
    slides_with_a_number(s)?;
    let factors = [
        "embedding_multiplier",
        "residual_multiplier",
        "logits_scaling",
        "attention_multiplier",
    ];
    not_null(s, &factors)?;
    let layers = s.value("num_hidden_layers").and_then(|layers| layers.as_u64());
    let allowed = "one base for all layers, other than 0: other bases, and layers without positions, are not simulated";
    s.only("layer_rope_theta", allowed, |bases| {
        let bases = bases.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_one = bases
            .iter()
            .all(|base| base.as_f64() == bases[0].as_f64() && base.as_f64() != Some(0.0));
        is_one && !bases.is_empty() && layers.is_none_or(|layers| bases.len() as u64 >= layers)
    })
}
