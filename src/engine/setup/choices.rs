//! Enums of the setup's choices, named as cases name them.

use serde::{Deserialize, Serialize};

/// Number format of weights and compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Precision {
    /// Everything in fp32.
    #[serde(rename = "fp32")]
    Fp32,
    /// Weights, gradients and optimizer states in bf16.
    #[default]
    #[serde(rename = "bf16")]
    Bf16,
    /// fp32 weights under `torch.autocast(dtype=bfloat16)`.
    #[serde(rename = "amp-bf16")]
    AmpBf16,
    /// fp32 weights under `torch.autocast(dtype=float16)` with a `GradScaler`.
    #[serde(rename = "amp-fp16")]
    AmpFp16,
}

/// Optimizer and the form of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// `torch.optim.AdamW(foreach=True)`, PyTorch's default on a GPU.
    #[default]
    Adamw,
    /// `torch.optim.AdamW(fused=True)`.
    AdamwFused,
    /// `torch.optim.AdamW(foreach=False)`: one parameter after the other.
    AdamwLoop,
    /// `torch.optim.SGD`, no momentum.
    Sgd,
    /// `torch.optim.SGD(momentum=0.9)`.
    Sgdm,
    /// `transformers.optimization.Adafactor`.
    Adafactor,
    /// `torch.optim.Adafactor`.
    AdafactorTorch,
    /// `bitsandbytes.optim.AdamW8bit`: moments in one byte, with a scale for each 256 of them.
    #[serde(rename = "adamw_8bit")]
    Adamw8bit,
    /// `bitsandbytes.optim.PagedAdamW8bit`: moments in one byte, large ones in memory that CUDA moves between host and
    /// device.
    #[serde(rename = "paged_adamw_8bit")]
    PagedAdamw8bit,
    /// `bitsandbytes.optim.PagedAdamW32bit`: moments in fp32, large ones paged.
    PagedAdamw,
}

/// Activation checkpointing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checkpointing {
    /// Every activation that backward needs is kept.
    #[default]
    None,
    /// `gradient_checkpointing_enable`: every block, non-reentrant.
    Full,
    /// Every block of the vision tower alone.
    Vision,
    /// Every block of the language model alone.
    Language,
}

/// transformers' `attn_implementation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attention {
    /// `scaled_dot_product_attention`.
    #[default]
    Sdpa,
    /// Scores, softmax, dropout and product as separate tensors.
    Eager,
    /// The package `flash-attn`, version 2. Simulated from the source of transformers 5.17 and flash-attn 2.8: no run
    /// of it has been recorded.
    #[serde(rename = "flash_attention_2")]
    FlashAttention2,
}

/// Parameters that are frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Freeze {
    /// All are trained.
    #[default]
    None,
    /// The vision tower is frozen.
    Vision,
    /// Only the connector is trained.
    AllButConnector,
    /// Only low-rank adapters are trained.
    Lora,
    /// Only low-rank adapters are trained, on weights kept in 4 bits: NF4 with double quantisation by bitsandbytes,
    /// after peft's `prepare_model_for_kbit_training`.
    Qlora,
}

/// State of the gradients after `optimizer.zero_grad`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroGrad {
    /// `set_to_none=True`, PyTorch's default: they are freed.
    #[default]
    ToNone,
    /// `set_to_none=False`: they stay, filled with zeros.
    ToZero,
}

/// Computation of a language model's loss from its last hidden states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// All logits, then transformers' `ForCausalLMLoss`.
    #[default]
    Full,
    /// Liger's `fused_linear_cross_entropy`: logits of a few rows at a time, never all.
    FusedLinear,
}
