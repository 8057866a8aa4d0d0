//! Gradient clipping (`torch/nn/utils/clip_grad.py`).

use super::work::{lists, turn};
use crate::dtype::DType;
use crate::tape::work::HostOp;
use crate::tape::{Tape, Tensor};

/// Elements that one block of a foreach kernel reads
/// (`kChunkSize` in `aten/src/ATen/native/cuda/MultiTensorApply.cuh`).
const CHUNK: u64 = 65_536;

/// Runs `make`, which makes the norms of `tensors` tensors, the largest of `largest` elements, while the partial norms
/// of all chunks are allocated (`foreach_tensor_norm_cuda` in `aten/src/ATen/native/cuda/ForeachReduceOp.cu`).
pub(crate) fn in_foreach_norm<R>(t: &Tape, tensors: u64, largest: u64, make: impl FnOnce() -> R) -> R {
    let partials = t.empty([tensors * largest.div_ceil(CHUNK)], DType::F32, "partial norms");
    let norms = make();
    drop(partials);
    norms
}

/// `clip_grad_norm_(params, 1.0)`: one norm for each gradient, by way of one partial norm for
/// each chunk, then a handful of scalars. Gradients are scaled in place.
pub fn clip_grad_norm(t: &Tape, params: &[Tensor]) {
    let grads: Vec<Tensor> = params.iter().filter_map(Tensor::grad).collect();
    let Some(largest) = grads.iter().map(Tensor::numel).max() else {
        return;
    };
    let dtype = grads[0].dtype();
    let mark = t.work_mark();
    t.host_op(HostOp::Step("clip"));
    grads.iter().for_each(|grad| turn(t, "clip", grad));
    let norms: Vec<Tensor> = in_foreach_norm(t, grads.len() as u64, largest, || {
        grads.iter().map(|_| t.empty([], dtype, "norm of a gradient")).collect()
    });
    t.ran(mark, []);
    let all: Vec<&Tensor> = grads.iter().collect();
    if t.works() {
        lists(t, &all, &[("_foreach_norm", 1, 0)]);
    }
    let stacked = t.empty([norms.len() as u64], dtype, "norms of gradients");
    let total = t.empty([], dtype, "total norm");
    drop((stacked, norms));
    let shifted = t.empty([], dtype, "total norm + 1e-6");
    let inverse = t.empty([], dtype, "1 / total norm");
    let coefficient = t.empty([], dtype, "clip coefficient");
    drop((inverse, shifted));
    let clamped = t.empty([], dtype, "clamped clip coefficient");
    if t.works() {
        lists(t, &all, &[("_foreach_mul_", 1, 1)]);
    }
    drop((clamped, coefficient, total));
}
