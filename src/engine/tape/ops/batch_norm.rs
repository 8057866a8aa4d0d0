//! Batch norm of images and volumes.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use crate::dtype::DType;

/// Weight, bias and running statistics of a batch norm, one number for each channel.
pub struct BatchNormTensors<'a> {
    /// Factor.
    pub weight: &'a Tensor,
    /// Term.
    pub bias: &'a Tensor,
    /// Mean over the batches so far.
    pub running_mean: &'a Tensor,
    /// Variance over the batches so far.
    pub running_var: &'a Tensor,
}

impl Tape {
    /// `torch.nn.functional.batch_norm(x, …)` of contiguous [n, channels, …], with running statistics. PyTorch's own
    /// kernels run it in bf16 (`aten/src/ATen/native/cuda/Normalization.cu`), cuDNN else, which takes no workspace in this
    /// layout; both keep mean and inverse deviation of each channel in fp32.
    pub fn batch_norm(&self, x: &Tensor, of: &BatchNormTensors<'_>) -> Tensor {
        let trains = self.0.training.get();
        let channels = x.size(1);
        if trains && x.numel() == channels {
            self.misfit("batch_norm of one value for each channel", &[x.shape()]);
        }
        let mut rec = self.record("NativeBatchNormBackward0", &[x, of.weight, of.bias]);
        for saved in [x, of.weight, of.running_mean, of.running_var] {
            rec.save(self, saved);
        }
        let out = self.empty_like(x, x.dtype(), "batch_norm");
        if trains {
            for name in ["batch_norm mean", "batch_norm deviation"] {
                let statistic = self.empty([channels], DType::F32, name);
                rec.save(self, &statistic);
            }
        }
        rec.finish(self, out, |t, bw| {
            let (x, weight) = (bw.saved[0].clone(), bw.saved[1].clone());
            let dense = t.dense_copy(bw.grad());
            let dx = bw.want(0, || t.empty_like(&x, x.dtype(), "batch_norm backward"));
            let of_channel = |i| bw.want(i, || t.empty_like(&weight, weight.dtype(), "batch_norm backward"));
            let grads = smallvec![dx, of_channel(1), of_channel(2)];
            drop(dense);
            grads
        })
    }

    /// `x.relu_()`: no new memory; backward needs the result.
    pub fn relu_(&self, x: Tensor) -> Tensor {
        let mut rec = self.record("ReluBackward0", &[&x]);
        // For its time: a kernel that reads and writes `x`, as this one does.
        self.add_in_place(&x, &x);
        let out = x.detach();
        drop(x);
        rec.save(self, &out);
        rec.finish(self, out, |t, bw| {
            let g = bw.grad();
            smallvec![Some(t.empty_like(g, g.dtype(), "relu backward"))]
        })
    }

    /// `torch.nn.functional.adaptive_avg_pool3d(x, 1)`: [n, c, t, h, w] → [n, c, 1, 1, 1], a mean over all positions.
    pub fn pool_volume(&self, x: &Tensor) -> Tensor {
        let rec = self.record("MeanBackward1", &[x]);
        let reduced: Vec<bool> = (0..x.dim()).map(|i| i > 1).collect();
        let out = self.reduce(x, &reduced, x.dtype(), "mean");
        let shape = *x.shape();
        rec.finish(self, out, move |t, bw| {
            smallvec![Some(t.empty(shape, bw.grad().dtype(), "mean backward"))]
        })
    }
}
