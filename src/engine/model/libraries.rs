//! Behaviour of training libraries with the models of a family.

use serde::{Deserialize, Serialize};

use crate::setup::FormerNames;

/// Linear layers that peft finds in a model for adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterMaps {
    /// `q_proj` to `down_proj`, by which adapters are usually placed.
    Usual,
    /// `q_proj` to `down_proj`, beside experts whose fused weights peft adapts if they are named.
    BesideExperts,
    /// `q_proj` to `down_proj`, beside such experts and a router that is a linear layer, for which peft fails (PhiMoE).
    BesideExpertsAndRouter,
    /// `q_proj` to `down_proj`, beside experts and a router that are not simulated with adapters: peft fails with
    /// `all-linear`, for which the router is a linear layer like any other (Llama 4).
    BesideOtherExperts,
    /// Linear layers of other names: found by `all-linear`, or if they are named.
    OtherNames,
    /// None: the linear layers are not `nn.Linear`, or the model has no language model.
    None,
}

/// Models whose experts peft 0.21 finds by the names that they had in transformers 4
/// (`_MODEL_TO_CONVERSION_PATTERN` in `transformers/conversion_mapping.py`, to which peft adds Mixtral, and not
/// Qwen2-MoE).
pub fn former_names(model_type: &str) -> Option<FormerNames> {
    match model_type {
        "mixtral" | "minimax" | "minimax_m2" => Some(FormerNames::Mixtral),
        "afmoe"
        | "cohere2_moe"
        | "deepseek_v2"
        | "deepseek_v3"
        | "deepseek_v32"
        | "dots1"
        | "ernie4_5_moe"
        | "exaone_moe"
        | "flex_olmo"
        | "glm4_moe"
        | "glm4_moe_lite"
        | "glm4v_moe"
        | "glm_moe_dsa"
        | "hunyuan_v1_moe"
        | "longcat_flash"
        | "mellum"
        | "olmoe"
        | "qwen3_moe"
        | "qwen3_next"
        | "qwen3_omni_moe"
        | "qwen3_omni_moe_thinker"
        | "solar_open" => Some(FormerNames::Qwen2Moe),
        _ => None,
    }
}

/// Returns true for models whose images ms-swift (4.6) encodes before their forward, in a hook of the module that the trainer
/// calls (`_post_encode` in `swift/template/templates`): autocast, in which accelerate wraps the forward alone, is not there
/// yet.
pub fn is_encoded_first(model_type: &str) -> bool {
    matches!(
        model_type,
        "glm4v"
            | "glm4v_moe"
            | "internvl"
            | "kimi_k25"
            | "ovis2_5"
            | "paddleocr_vl"
            | "qwen2_5_vl"
            | "qwen2_vl"
            | "qwen3_5"
            | "qwen3_5_moe"
    )
}

/// Liger's replacement of a model's forward (`liger_kernel/transformers/model`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liger {
    /// Liger replaces it.
    Replaces,
    /// Liger replaces it, and the replacement fails with transformers 5.17.
    Fails,
    /// Liger does not know the family.
    Unknown,
    /// Liger replaces it, and the replacement is not simulated.
    NotSimulated,
}

/// Reason that transformers 5.17 and flash-attn 2.8 cannot run `flash_attention_2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoFlash {
    /// BLIP-2's querying transformer stays in fp32.
    Blip2,
    /// The attention of Llama-3.2-Vision's tower has no `is_causal`.
    Mllama,
    /// The kernels take only fp16 and bf16.
    Fp32,
    /// The kernels take heads of up to 256 elements.
    WideHeads,
    /// The kernels take the model, but its calls of them are not simulated.
    NotSimulated,
}

impl NoFlash {
    /// English reason.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Blip2 => "transformers refuses it for BLIP-2, whose querying transformer stays in fp32",
            Self::Mllama => {
                "transformers 5.17 fails for Llama-3.2-Vision: the attention of its tower has no `is_causal`"
            }
            Self::WideHeads => "FlashAttention takes heads of up to 256 elements, and this model has longer ones",
            Self::NotSimulated => "it is not simulated for this model; take `attn` sdpa or eager",
            Self::Fp32 => "FlashAttention runs in fp16 and bf16 only, and `precision` is fp32",
        }
    }
}
