//! Gradient clipping (`torch/nn/utils/clip_grad.py`).

use super::groups::by_dtype;
use super::work::{lists, note_parameter};
use crate::dtype::DType;
use crate::tape::work::{Beside, HostOp};
use crate::tape::{Tape, Tensor, promote};

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

/// Way in which `clip_grad_norm_` takes the norms of gradients, which what wraps the model decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Norms {
    /// All at once.
    #[default]
    Foreach,
    /// All at once, of DTensors, whose norms are raised to the power, summed over the GPUs, and brought back.
    ForeachOfShards,
    /// One by one (`_get_grad_norm` in `torch/distributed/fsdp/fully_sharded_data_parallel.py`).
    EachAlone,
}

/// `clip_grad_norm_(params, 1.0)`: one norm for each gradient, by way of one partial norm for
/// each chunk, then a handful of scalars. Gradients are scaled in place. Returns the total norm, if there are gradients.
pub fn clip_grad_norm(t: &Tape, params: &[Tensor], form: Norms) -> Option<Tensor> {
    let grads: Vec<Tensor> = params.iter().filter_map(Tensor::grad).collect();
    if grads.is_empty() {
        return None;
    }
    let groups = by_dtype(&grads);
    let dtype = grads.iter().map(Tensor::dtype).fold(grads[0].dtype(), promote);
    let mark = t.work_mark();
    t.host_op(HostOp::Step("clip"));
    grads.iter().for_each(|grad| note_parameter(t, "clip", grad));
    let mut norms: Vec<Tensor> = Vec::with_capacity(grads.len());
    let in_foreach = if form == Norms::EachAlone { Vec::new() } else { groups };
    for group in in_foreach {
        let largest = group.iter().map(|grad| grad.numel()).max().unwrap_or(0);
        in_foreach_norm(t, group.len() as u64, largest, || {
            let of_group = group.iter().map(|grad| t.empty([], grad.dtype(), "norm of a gradient"));
            norms.extend(of_group);
        });
    }
    if form == Norms::EachAlone {
        norms.extend(grads.iter().map(|grad| {
            let norm = t.empty([], DType::F32, "norm of a gradient");
            t.in_reduction(grad, &vec![true; grad.dim()], DType::F32.width());
            norm
        }));
    }
    t.ran(mark, []);
    let all: Vec<&Tensor> = grads.iter().collect();
    if t.works() {
        lists(t, &all, &[("_foreach_norm", 1, 0)]);
    }
    let stacked = t.empty([norms.len() as u64], dtype, "norms of gradients");
    let summed = (form == Norms::ForeachOfShards).then(|| {
        let of_each = |name| t.empty([norms.len() as u64], dtype, name);
        let powers = of_each("powers of norms");
        let summed = of_each("sums of powers");
        t.collective_at_once(Beside::AllReduce, norms.len() as u64 * dtype.width());
        let waited = of_each("sums of powers");
        drop(summed);
        (powers, waited, of_each("norms of whole gradients"))
    });
    if form == Norms::EachAlone {
        t.collective_at_once(Beside::AllReduce, dtype.width());
    }
    let total = t.empty([], dtype, "total norm");
    drop((summed, stacked, norms));
    let shifted = t.empty([], dtype, "total norm + 1e-6");
    let inverse = t.empty([], dtype, "1 / total norm");
    let coefficient = t.empty([], dtype, "clip coefficient");
    drop((inverse, shifted));
    let clamped = t.empty([], dtype, "clamped clip coefficient");
    if t.works() {
        lists(t, &all, &[("_foreach_mul_", 1, 1)]);
    }
    drop((clamped, coefficient));
    Some(total)
}
