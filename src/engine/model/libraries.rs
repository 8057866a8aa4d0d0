//! Behaviour of training libraries with the models of a family.

use serde::{Deserialize, Serialize};

/// Linear maps that peft finds in a model for adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterMaps {
    /// `q_proj` to `down_proj`, by which adapters are usually placed.
    Usual,
    /// `q_proj` to `down_proj`, beside experts whose fused weights peft adapts too unless only attention is named.
    BesideExperts,
    /// Linear maps of other names: found by `all-linear`, or if they are named.
    OtherNames,
    /// None: the maps are not `nn.Linear`, or the model has no language model.
    None,
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
