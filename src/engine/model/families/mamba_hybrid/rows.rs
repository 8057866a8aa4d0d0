//! Attention, MLPs and experts of the family's models, as differences to Llama's.

use crate::model::ModelError;
use crate::model::config::Activation;
use crate::model::config::section::Section;
use crate::model::decoder::{
    Biases, CHOSEN, ChosenWeights, DecoderDefaults, DecoderFamily, DenseLayers, ExpertKeys, GroupKeys, GroupScores,
    HeadRule, LlamaBlock, LlamaModules, MlpKind, Modules, OfDense, Rotation, SharedKeys, Windows, not_null,
};
use crate::model::facts::ModelType;

/// Attention and MLPs of Bamba.
pub(super) static BAMBA: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("bamba", &["BambaForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 128_000,
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 262_144,
        partial_rotary: 0.5,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        s.only("z_loss_coefficient", "0: its loss is not simulated", |v| {
            v.as_f64() == Some(0.0)
        })?;
        Biases::of_attention_and_mlp(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        partial_rotary: true,
        block: LlamaBlock {
            rotation: Rotation::FreedPart,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Attention and the MLP that all tokens pass of the Granite hybrids without experts.
pub(super) static GRANITE_DENSE: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("granitemoehybrid", &["GraniteMoeHybridForCausalLM"]),
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Floors,
    biases: granite_biases,
    windows: Windows::OTHER_KINDS,
    ..DecoderFamily::USUAL
};

/// The same with experts.
pub(super) static GRANITE: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("granitemoehybrid", &["GraniteMoeHybridForCausalLM"]),
    defaults: DecoderDefaults::LLAMA,
    heads: HeadRule::Floors,
    biases: granite_biases,
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_local_experts"; 2], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 11_008),
            weights: ChosenWeights::OfChosenInF32,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

fn granite_biases(s: &Section) -> Result<Biases, ModelError> {
    let numbers = [
        "num_local_experts",
        "num_experts_per_tok",
        "embedding_multiplier",
        "residual_multiplier",
        "logits_scaling",
        "attention_multiplier",
    ];
    not_null(s, &numbers)?;
    Biases::of_attention(s)
}

/// Attention, MLPs and experts of Nemotron-H.
pub(super) static NEMOTRON: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("nemotron_h", &["NemotronHForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 131_072,
        intermediate: 21_504,
        kv_heads: Some(8),
        head_dim: Some(128),
        max_positions: 4096,
        activation: Activation::Relu2,
        ..DecoderDefaults::LLAMA
    },
    biases: |s| {
        Ok(Biases {
            mlp: s.flag("mlp_bias", false)?,
            ..Biases::NONE
        })
    },
    windows: Windows::OTHER_KINDS,
    newer_activation_key: Some("mlp_hidden_act"),
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["n_routed_experts", "num_local_experts"], 8),
            chosen: (CHOSEN, 2),
            intermediate: ("moe_intermediate_size", 7688),
            weights: ChosenWeights::Grouped(GroupKeys {
                groups: 1,
                kept: 1,
                is_normalised: true,
                scores: GroupScores::Sigmoids,
            }),
            gate_first: false,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        block: LlamaBlock {
            mlp: MlpKind::Plain(["up_proj", "down_proj"]),
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Attention and MLPs of Falcon H1.
pub(super) static FALCON: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("falcon_h1", &["FalconH1ForCausalLM"]),
    defaults: DecoderDefaults {
        vocab: 128_000,
        intermediate: 14_336,
        kv_heads: Some(8),
        max_positions: 8192,
        ..DecoderDefaults::LLAMA
    },
    heads: HeadRule::Floors,
    biases: |s| {
        let numbers = [
            "lm_head_multiplier",
            "embedding_multiplier",
            "key_multiplier",
            "attention_out_multiplier",
            "attention_in_multiplier",
            "ssm_in_multiplier",
            "ssm_out_multiplier",
        ];
        not_null(s, &numbers)?;
        Biases::of_attention_and_mlp(s)
    },
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        block: LlamaBlock {
            scales_keys: true,
            ..LlamaModules::LLAMA.block
        },
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

/// Attention and MLPs of Jamba without experts.
pub(super) static JAMBA_DENSE: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("jamba", &["JambaForCausalLM"]),
    defaults: JAMBA_DEFAULTS,
    heads: HeadRule::Floors,
    biases: |_| Ok(Biases::NONE),
    windows: Windows::OTHER_KINDS,
    ..DecoderFamily::USUAL
};

/// The same with experts, whose router is the block's own.
pub(super) static JAMBA: DecoderFamily = DecoderFamily {
    model_type: ModelType::new("jamba", &["JambaForCausalLM"]),
    defaults: JAMBA_DEFAULTS,
    heads: HeadRule::Floors,
    biases: |_| Ok(Biases::NONE),
    windows: Windows::OTHER_KINDS,
    modules: Modules::Llama(LlamaModules {
        experts: Some(&ExpertKeys {
            experts: (["num_experts", "num_local_experts"], 16),
            chosen: (CHOSEN, 2),
            intermediate: ("intermediate_size", 14_336),
            weights: ChosenWeights::OfBlock,
            gate_first: true,
            dense: DenseLayers::Never,
            shared: SharedKeys::Never,
            of_dense: OfDense::Usual,
        }),
        ..LlamaModules::LLAMA
    }),
    ..DecoderFamily::USUAL
};

const JAMBA_DEFAULTS: DecoderDefaults = DecoderDefaults {
    vocab: 65_536,
    intermediate: 14_336,
    kv_heads: Some(8),
    max_positions: 262_144,
    ..DecoderDefaults::LLAMA
};
