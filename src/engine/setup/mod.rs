//! Training configuration that the user chooses: batch, sequence, images, precision, optimizer, checkpointing,
//! freezing.

mod adapters;
mod batching;
mod choices;
mod parallel;

pub use adapters::{AdapterType, Targets};
pub use batching::Packing;
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
    /// Text positions of each sample of a micro-batch, if they differ; `batch` and `seq` then follow from them.
    pub lengths: Vec<u64>,
    /// Layout of samples of different lengths.
    pub packing: Packing,
    /// Images per sample.
    pub images: u64,
    /// Pixels a side; the model's own size if absent.
    pub image: Option<u64>,
    /// Patch grid `[height, width]` before the 2×2 merge, for Qwen-VL models.
    pub grid: Option<[u64; 2]>,
    /// Pixels `[height, width]` of each image of a sample, if they differ; `images`, `image` and `grid` then follow
    /// from them.
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
    /// Parameters that are frozen.
    pub freeze: Freeze,
    /// LoRA rank.
    pub rank: u64,
    /// LoRA dropout probability.
    pub lora_dropout: f64,
    /// Projections that get low-rank adapters.
    pub lora_targets: Targets,
    /// Type of the adapters' weights.
    pub lora_dtype: AdapterType,
    /// Micro-batches per optimizer step.
    pub accum: u64,
    /// Gradient clipping at norm 1.
    pub clip: bool,
    /// State of the gradients after `zero_grad`.
    pub zero_grad: ZeroGrad,
    /// Keeps autocast's low-precision copies of weights until forward ends.
    pub autocast_cache: bool,
    /// Keeps an exponential moving average of all weights (`torch.optim.swa_utils.AveragedModel` with
    /// `get_ema_multi_avg_fn`).
    pub ema: bool,
    /// Computation of a language model's loss.
    pub loss: Loss,
    /// Keeps keys and values of every forward of the language model (`config.use_cache`); the configuration's own value
    /// if absent.
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
