//! What the user chose: batch, sequence, images, precision, optimizer, checkpointing, freezing.

mod case;

pub use case::{Case, CaseError};

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
    /// The same of the vision tower alone.
    Vision,
    /// The same of the language model alone.
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
    /// The package `flash-attn`, version 2. It follows the source of transformers 5.17 and
    /// flash-attn 2.8: no run of it has been recorded.
    #[serde(rename = "flash_attention_2")]
    FlashAttention2,
}

/// Which parameters are trained.
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
    /// Only low-rank adapters on the language model's projections are trained.
    Lora,
}

/// One training configuration. Field names are the vocabulary of cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Micro-batch: samples per forward.
    pub batch: u64,
    /// Text positions per sample, image tokens included; 0 for pure vision models.
    pub seq: u64,
    /// Images per sample.
    pub images: u64,
    /// Pixels a side; the model's own size where absent.
    pub image: Option<u64>,
    /// Patch grid `[height, width]` before the 2×2 merge, for Qwen-VL models.
    pub grid: Option<[u64; 2]>,
    /// Frames per video, for video models.
    pub frames: Option<u64>,
    /// Number format.
    pub precision: Precision,
    /// Optimizer.
    pub optim: Optimizer,
    /// Activation checkpointing.
    pub ckpt: Checkpointing,
    /// Attention implementation.
    pub attn: Attention,
    /// Which parameters are trained.
    pub freeze: Freeze,
    /// LoRA rank.
    pub rank: u64,
    /// LoRA dropout probability.
    pub lora_dropout: f64,
    /// Micro-batches per optimizer step.
    pub accum: u64,
    /// Gradient clipping at norm 1.
    pub clip: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            batch: 1,
            seq: 2048,
            images: 1,
            image: None,
            grid: None,
            frames: None,
            precision: Precision::default(),
            optim: Optimizer::default(),
            ckpt: Checkpointing::default(),
            attn: Attention::default(),
            freeze: Freeze::default(),
            rank: 16,
            lora_dropout: 0.0,
            accum: 1,
            clip: false,
        }
    }
}
