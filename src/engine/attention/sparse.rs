//! `topk` and `scatter`, which no simulated model uses.

use smallvec::smallvec;

use crate::dtype::DType;
use crate::tape::work::{Class, rows_of};
use crate::tape::{Tape, Tensor};

/// `torch.topk(x, k, dim=-1)`: values and int64 indices. Backward scatters the gradient into zeros.
///
/// Sorting is in place for `k` up to 4096; the scratch of the selection, a few bytes for each row
/// (`aten/src/ATen/native/cuda/TensorTopK.cu`), is freed before anything of the size of `x` is allocated.
pub(super) fn top_k(t: &Tape, x: &Tensor, k: u64) -> (Tensor, Tensor) {
    let mut rec = t.record("TopkBackward0", &[x]);
    let mut shape = *x.shape();
    let last = shape.len() - 1;
    shape[last] = k;
    let mark = t.work_mark();
    let values = t.empty(shape, x.dtype(), "top-k values");
    let indices = t.empty(shape, DType::I64, "top-k indices");
    of_rows(t, mark, ("top-k", Class::TopK), x, k);
    rec.save(t, &indices);
    let from = *x.shape();
    let values = rec.finish(t, values, move |t, bw| {
        // Zeros, into which the gradients are then scattered.
        let out = t.empty(from, bw.grad().dtype(), "top-k backward");
        put(t, &out, k);
        smallvec![Some(out)]
    });
    (values, indices)
}

/// `x.scatter(-1, indices, values)` into a copy of `x`, which is not trained.
pub(super) fn scatter(t: &Tape, x: &Tensor, indices: &Tensor, values: &Tensor) -> Tensor {
    let mut rec = t.record("ScatterBackward0", &[values]);
    rec.save(t, indices);
    // A copy, into which the values are then scattered.
    let out = t.empty_like(x, x.dtype(), "scatter");
    put(t, &out, values.last());
    rec.finish(t, out, |t, bw| {
        let (g, indices) = (bw.grad(), &bw.saved[0]);
        let mark = t.work_mark();
        let taken = t.empty(*indices.shape(), g.dtype(), "gather");
        of_rows(t, mark, ("gather", Class::GatherLast), g, indices.last());
        smallvec![Some(taken)]
    })
}

/// Records the kernel that scatters values into rows of `x` in place.
fn put(t: &Tape, x: &Tensor, k: u64) {
    of_rows(t, t.work_mark(), ("scatter", Class::Scatter), x, k);
}

/// Records one kernel over rows of `x`, in place of the kernels since `mark`.
fn of_rows(t: &Tape, mark: usize, kernel: (&'static str, Class), x: &Tensor, k: u64) {
    let [rows, columns, ..] = rows_of(x);
    let width = x.dtype().width();
    // A search reads whole rows.
    let read = if kernel.1 == Class::TopK { columns } else { k };
    let bytes = [rows * read * width, rows * k * width];
    t.ran_as(mark, kernel, x.dtype(), bytes, [rows, columns, k, 0]);
}
