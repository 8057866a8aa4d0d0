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
    /// A count that lives as long as the module.
    _num_batches_tracked: Tensor,
}

impl BatchNorm {
    /// Makes the norm of `channels` as the current module.
    pub fn new(b: &Builder, channels: u64) -> Self {
        Self {
            weight: b.weight("weight", [channels]),
            bias: b.weight("bias", [channels]),
            running_mean: b.buffer("running_mean", [channels], b.dtype()),
            running_var: b.buffer("running_var", [channels], b.dtype()),
            _num_batches_tracked: b.buffer("num_batches_tracked", [], DType::I64),
        }
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
