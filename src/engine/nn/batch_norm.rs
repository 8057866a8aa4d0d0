//! Batch norm.

use super::builder::Builder;
use crate::dtype::DType;
use crate::tape::{BatchNormTensors, Tape, Tensor};

/// `torch.nn.BatchNorm2d` or `BatchNorm3d`, with running statistics.
pub struct BatchNorm {
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
}

impl BatchNorm {
    /// Makes the norm of `channels` as the current module.
    pub fn new(b: &Builder, channels: u64) -> Self {
        let norm = Self {
            weight: b.weight("weight", [channels]),
            bias: b.weight("bias", [channels]),
            running_mean: b.buffer("running_mean", [channels], b.dtype()),
            running_var: b.buffer("running_var", [channels], b.dtype()),
        };
        b.buffer("num_batches_tracked", [], DType::I64);
        norm
    }

    /// [n, channels, …] → [n, channels, …].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        t.batch_norm(
            x,
            &BatchNormTensors {
                weight: &self.weight,
                bias: &self.bias,
                running_mean: &self.running_mean,
                running_var: &self.running_var,
            },
        )
    }
}
