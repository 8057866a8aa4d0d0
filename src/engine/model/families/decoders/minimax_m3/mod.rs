//! MiniMax-M3's language model (`transformers/models/minimax_m3_vl`).

mod block;

pub(crate) use block::ClampedExpertLayer;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderConfig, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock,
    LlamaModules, Modules, OfDense, Rotation, SharedKeys, SigmoidForm, not_null,
};
use crate::model::facts::ModelType;
use crate::nn::{NormKind, RmsScale};

/// `minimax_m3_vl_text`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "minimax_m3_vl_text",
        classes: &["MiniMaxM3VLForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 200_064,
        hidden: 6144,
        intermediate: 12_288,
        layers: 60,
        heads: 64,
        kv_heads: Some(4),
        head_dim: Some(128),
        max_positions: 524_288,
        theta: 5e6,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        only_full_attention(s)?;
        not_null(s, &["num_experts_per_tok", "num_key_value_heads", "head_dim"])?;
        Ok(Biases::NONE)
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        has_own_activation: true,
        intermediate_key: "dense_intermediate_size",
        refuses_flash: true,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 128),
            chosen: (CHOSEN, 4),
            intermediate: ("intermediate_size", 3072),
            weights: ChosenWeights::Sigmoids(SigmoidForm {
                wide: false,
                in_place: true,
                corrects: true,
            }),
            gate_first: true,
            dense: DenseLayers::Kinds(0),
            shared: SharedKeys::OfWidth("shared_intermediate_size", 3072),
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::OnePlusWeight),
            rotation: Rotation::FreedPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Refuses layers that choose blocks of keys, and lists of earlier files.
fn only_full_attention(s: &Section) -> Result<(), ModelError> {
    s.only(
        "layer_types",
        "full_attention in all layers: attention to chosen blocks of keys is not simulated",
        |kinds| {
            kinds
                .as_array()
                .is_none_or(|kinds| kinds.iter().all(|kind| kind != "minimax_m3_sparse"))
        },
    )?;
    s.only(
        "sparse_attention_config",
        "none: attention to chosen blocks of keys is not simulated",
        |_| false,
    )?;
    s.only(
        "moe_layer_freq",
        "none: write `mlp_layer_types`, a list of \"sparse\" and \"dense\"",
        |_| false,
    )
}

/// Width of the expert that all tokens pass.
fn shared_width(c: &DecoderConfig) -> u64 {
    c.experts
        .as_ref()
        .and_then(|experts| experts.shared_width())
        .unwrap_or_default()
}
