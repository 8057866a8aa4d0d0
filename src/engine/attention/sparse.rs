//! `topk` and `scatter`, which no model here uses.

use smallvec::smallvec;

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// `torch.topk(x, k, dim=-1)`: values and int64 indices. Backward puts the gradient back into zeros.
///
/// Sorting happens in place for `k` up to 4096; the scratch of the selection, a few bytes for each row
/// (`aten/src/ATen/native/cuda/TensorTopK.cu`), is gone before anything of the size of `x` is made.
pub(super) fn top_k(t: &Tape, x: &Tensor, k: u64) -> (Tensor, Tensor) {
    let mut rec = t.record("TopkBackward0", &[x]);
    let mut shape = *x.shape();
    let last = shape.len() - 1;
    shape[last] = k;
    let values = t.empty(shape, x.dtype(), "top-k values");
    let indices = t.empty(shape, DType::I64, "top-k indices");
    rec.save(t, &indices);
    let from = *x.shape();
    let values = rec.finish(t, values, move |t, bw| {
        smallvec![Some(t.empty(from, bw.grad().dtype(), "top-k backward"))]
    });
    (values, indices)
}

/// `x.scatter(-1, indices, values)` into a copy of `x`, which is not trained.
pub(super) fn scatter(t: &Tape, x: &Tensor, indices: &Tensor, values: &Tensor) -> Tensor {
    let mut rec = t.record("ScatterBackward0", &[values]);
    rec.save(t, indices);
    let out = t.empty_like(x, x.dtype(), "scatter");
    rec.finish(t, out, |t, bw| {
        let (g, indices) = (bw.grad(), &bw.saved[0]);
        smallvec![Some(t.empty(*indices.shape(), g.dtype(), "gather"))]
    })
}
