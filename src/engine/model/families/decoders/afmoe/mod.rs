//! AFMoE: gated attention, norms around both parts, and experts chosen by sigmoids (`transformers/models/afmoe`).

mod block;
mod moe;

pub(crate) use block::Layer;

use crate::model::config::limits;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LateScale, LlamaBlock,
    LlamaModules, Modules, OfDense, SharedKeys, WindowLength, Windows, not_null, slides_with_a_number, some_slide,
};
use crate::model::facts::ModelType;
use crate::nn::{NormKind, RmsScale};

/// `afmoe`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "afmoe",
        classes: &["AfmoeForCausalLM"],
    },
    defaults: DecoderDefaults {
        vocab: 200_192,
        hidden: 2048,
        intermediate: 6144,
        heads: 16,
        head_dim: Some(128),
        max_positions: 16_384,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        some_slide(s)?;
        slides_with_a_number(s)?;
        let numbers = [
            "head_dim",
            "num_dense_layers",
            "num_experts",
            "num_experts_per_tok",
            "num_shared_experts",
            "route_scale",
            "global_attn_every_n_layers",
        ];
        not_null(s, &numbers)?;
        Biases::of_attention(s)
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(1024),
        slides: |s, _, layer| {
            let every = s.size_or("global_attn_every_n_layers", 4, limits::LAYERS)?;
            Ok((layer + 1) % every != 0)
        },
    },
    qk_norm: true,
    modules: Modules::Llama(LlamaModules {
        both_masks: true,
        late_scale: LateScale::Beside("mup_enabled"),
        experts: Some(&ExpertKeys {
            experts: (["num_experts"; 2], 64),
            chosen: (CHOSEN, 6),
            intermediate: ("moe_intermediate_size", 1408),
            weights: ChosenWeights::OfBlock,
            gate_first: true,
            dense: DenseLayers::FirstOf("num_dense_layers", 1),
            shared: SharedKeys::Added("num_shared_experts", 2),
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};
