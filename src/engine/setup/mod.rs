//! What the user chose: batch, sequence, images, precision, optimizer, checkpointing, freezing.

mod adapters;
mod batching;
mod case;
mod choices;
mod parallel;

pub use adapters::{AdapterType, Targets};
pub use batching::Packing;
pub use case::{Case, CaseError};
pub use choices::{Attention, Checkpointing, Freeze, Loss, Optimizer, Precision, ZeroGrad};
pub use parallel::{Parallel, Strategy};

use serde::{Deserialize, Serialize};

/// One training configuration. Field names are the vocabulary of cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setup {
    /// Micro-batch: samples per forward.
    pub batch: u64,
    /// Text positions per sample, image tokens included; 0 for pure vision models.
    pub seq: u64,
    /// Text positions of each sample of a micro-batch, where they differ; then `batch` and `seq` follow.
    pub lengths: Vec<u64>,
    /// How such samples are put together.
    pub packing: Packing,
    /// Images per sample.
    pub images: u64,
    /// Pixels a side; the model's own size where absent.
    pub image: Option<u64>,
    /// Patch grid `[height, width]` before the 2×2 merge, for Qwen-VL models.
    pub grid: Option<[u64; 2]>,
    /// Pixels `[height, width]` of each image of a sample, where they differ; then `images`, `image` and
    /// `grid` follow.
    pub image_sizes: Vec<[u64; 2]>,
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
    /// Which projections get low-rank adapters.
    pub lora_targets: Targets,
    /// Type of the adapters' weights.
    pub lora_dtype: AdapterType,
    /// Micro-batches per optimizer step.
    pub accum: u64,
    /// Gradient clipping at norm 1.
    pub clip: bool,
    /// What `zero_grad` leaves of gradients.
    pub zero_grad: ZeroGrad,
    /// Whether autocast keeps its low-precision copies of weights until forward ends.
    pub autocast_cache: bool,
    /// Whether an exponential moving average of all weights is kept
    /// (`torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`).
    pub ema: bool,
    /// How the loss of a language model is taken.
    pub loss: Loss,
    /// Whether the language model keeps keys and values of every forward, as `config.use_cache` says;
    /// absent, what the configuration says.
    pub use_cache: Option<bool>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            batch: 1,
            seq: 2048,
            lengths: Vec::new(),
            packing: Packing::default(),
            images: 1,
            image: None,
            grid: None,
            image_sizes: Vec::new(),
            frames: None,
            precision: Precision::default(),
            optim: Optimizer::default(),
            ckpt: Checkpointing::default(),
            attn: Attention::default(),
            freeze: Freeze::default(),
            rank: 16,
            lora_dropout: 0.0,
            lora_targets: Targets::default(),
            lora_dtype: AdapterType::default(),
            accum: 1,
            clip: false,
            zero_grad: ZeroGrad::default(),
            autocast_cache: true,
            ema: false,
            loss: Loss::default(),
            use_cache: None,
        }
    }
}
