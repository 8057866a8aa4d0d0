//! Collectives between GPUs that share a linear layer, as `DTensor` runs them (`torch/distributed/tensor/`).
//!
//! Collectives are out of place (`torch.ops._c10d_functional`): each copies its input and works on the copy. The host
//! waits at once, in stream order, so that no lifetime depends on the collective.

use smallvec::smallvec;

use super::super::core::Tape;
use super::super::tensor::Tensor;
use super::super::work::{CollectiveKind, HostOp};
use crate::dtype::DType;

impl Tape {
    /// Passes a tensor that every GPU has to a map of which each has a part: its gradient is the sum over all parts
    /// (`DTensor.from_local(x, [Replicate()])`).
    pub fn share(&self, x: &Tensor) -> Tensor {
        let rec = self.record("FromTorchTensorBackward", &[x]);
        self.host_op(HostOp::DTensor { gradient: false });
        rec.finish(self, x.alias(*x.shape(), *x.strides()), |t, b| {
            t.host_op(HostOp::DTensor { gradient: true });
            smallvec![Some(t.all_reduce(b.grad()))]
        })
    }

    /// Sums over all GPUs (`Partial` to `Replicate`).
    pub fn sum_partials(&self, x: &Tensor) -> Tensor {
        let rec = self.record("RedistributeBackward", &[x]);
        self.host_op(HostOp::DTensor { gradient: false });
        let out = self.all_reduce(x);
        rec.finish(self, out, |t, b| {
            t.host_op(HostOp::DTensor { gradient: true });
            smallvec![Some(b.grad().clone())]
        })
    }

    /// Concatenates the parts of all GPUs in the last dimension (`Shard(-1)` to `Replicate`): they are gathered one
    /// after the other, then copied into place. Backward keeps a copy of the GPU's own part.
    pub fn gather_shards(&self, x: &Tensor) -> Tensor {
        let (part, last) = (x.last(), x.dim() - 1);
        let rec = self.record("RedistributeBackward", &[x]);
        let mut shape = *x.shape();
        shape[0] *= self.group();
        let gathered = self.empty(shape, x.dtype(), "all-gather");
        self.collective(CollectiveKind::AllGather, &gathered);
        let mut shape = *x.shape();
        shape[last] = part * self.group();
        let out = self.empty(shape, x.dtype(), "gathered side by side");
        drop(gathered);
        rec.finish(self, out, move |t, b| {
            smallvec![Some(t.contiguous_copy(&b.grad().narrow_raw(last, part)))]
        })
    }

    /// Looks up rows of a table of which each GPU has a part, for ids [..]: [.., width]. Ids of other parts are masked,
    /// then all results are summed (`MaskPartial`); backward makes the gradient of the whole table, of which each GPU
    /// adds its part to that of the head.
    pub fn embedding_rowwise(&self, weight: &Tensor, ids: &Tensor) -> Tensor {
        let places = {
            let below = self.compute(ids, DType::Bool, "ids below the part");
            let above = self.compute(ids, DType::Bool, "ids above the part");
            let mask = self.compute(ids, DType::Bool, "ids of other parts");
            drop((below, above));
            let shifted = self.compute(ids, DType::I64, "ids in the part");
            let places = self.compute(ids, DType::I64, "masked ids");
            drop(shifted);
            (mask, places)
        };
        let out = self.embedding_in(weight, ids, self.group());
        drop(places);
        self.sum_partials(&out)
    }

    /// Receives a tensor into the buffer of a pipeline stage.
    pub fn receive(&self, buffer: &Tensor) {
        self.collective(CollectiveKind::Receive, buffer);
    }

    fn all_reduce(&self, x: &Tensor) -> Tensor {
        let out = self.empty(*x.shape(), x.dtype(), "all-reduce");
        self.collective(CollectiveKind::AllReduce, &out);
        out
    }

    fn collective(&self, what: CollectiveKind, whole: &Tensor) {
        if self.works() {
            let bytes = whole.numel() * whole.dtype().width();
            self.host_op(HostOp::Collective(what, bytes));
        }
    }
}
