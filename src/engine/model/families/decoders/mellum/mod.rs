//! Mellum: Qwen3's experts, with layers that slide or see all, whose rotary embeddings are their own
//! (`transformers/models/mellum`). The model goes through the kinds of layers as a Python set, so that the hash seed of
//! the process decides which kind's mask is made first; here it is that of layers that see all.

pub(crate) use crate::model::decoder::sparse::ExpertLayer;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaModules, Modules,
    OfDense, SharedKeys, WindowLength, Windows, rope_tables, slides_with_a_number,
};
use crate::model::facts::ModelType;

/// `mellum`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "mellum",
        classes: &["MellumForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 98_304,
        hidden: 2304,
        intermediate: 7168,
        layers: 28,
        heads: 32,
        kv_heads: Some(4),
        head_dim: Some(128),
        max_positions: 131_072,
        theta: 500_000.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        check(s)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(1024),
        slides: |_, _, _| Ok(false),
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        rotary_by_kind: true,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 64),
            chosen: (CHOSEN, 8),
            intermediate: ("moe_intermediate_size", 896),
            weights: ChosenWeights::MaybeNormalised(false),
            gate_first: false,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Refuses what is not simulated.
fn check(s: &Section) -> Result<(), ModelError> {
    slides_with_a_number(s)?;
    s.required("norm_topk_prob", "true or false")?;
    let mlps = "all \"sparse\": layers without experts are not simulated";
    s.only("mlp_layer_types", mlps, |types| {
        types
            .as_array()
            .is_some_and(|types| types.iter().all(|kind| kind == "sparse"))
    })?;
    let layers = "some of full_attention: a model without any is not simulated";
    s.only("layer_types", layers, |types| {
        types
            .as_array()
            .is_none_or(|types| types.iter().any(|kind| kind == "full_attention"))
    })?;
    s.only(
        "rope_scaling",
        "null: `rope_parameters` has a table for each kind of layer",
        |_| false,
    )?;
    if let Some(tables) = s.optional_nested("rope_parameters", "rotary embedding")? {
        for kind in rope_tables::KINDS {
            tables.required(kind, "a table: each kind of layer has its own")?;
        }
    }
    rope_tables::are_static(s)
}
