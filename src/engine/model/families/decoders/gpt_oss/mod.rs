//! gpt-oss: experts with biases, and attention with sinks (`transformers/models/gpt_oss`).

mod block;

pub(crate) use block::Layer;

use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, LlamaBlock, LlamaModules,
    Modules, OfDense, Rotation, SharedKeys, WindowLength, Windows, not_null, slides_with_a_number,
};
use crate::model::facts::{ModelType, catalogue};
use crate::model::libraries::Liger;
use crate::nn::{NormKind, RmsScale};

/// `gpt_oss`.
pub(crate) const FAMILY: DecoderFamily = DecoderFamily {
    model_type: ModelType {
        name: "gpt_oss",
        classes: &["GptOssForCausalLM"],
    },
    catalogue: catalogue!["openai/gpt-oss-20b", "openai/gpt-oss-120b",],
    defaults: DecoderDefaults {
        vocab: 201_088,
        hidden: 2880,
        intermediate: 2880,
        layers: 36,
        heads: 64,
        kv_heads: Some(8),
        head_dim: Some(64),
        max_positions: 131_072,
        theta: 150_000.0,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        slides_with_a_number(s)?;
        not_null(s, &["num_key_value_heads", "head_dim"])?;
        let attention = s.flag("attention_bias", true)?;
        Ok(Biases {
            qkv: attention,
            output: attention,
            mlp: false,
        })
    },
    windows: Windows {
        switch: None,
        length: WindowLength::Or(128),
        slides: |_, _, layer| Ok(layer % 2 == 0),
    },
    modules: Modules::Llama(LlamaModules {
        both_masks: true,
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts", "num_experts"], 128),
            chosen: (CHOSEN, 4),
            intermediate: ("intermediate_size", 2880),
            weights: ChosenWeights::OfChosen,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            norm: NormKind::Rms(RmsScale::WeightFirst),
            rotation: Rotation::Halves,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    liger: Liger::NotSimulated,
    ..DecoderFamily::USUAL
};
