//! Running sums, runs of equal elements and repeats.

use super::call::Call;
use crate::dtype::DType;
use crate::tape::{Tensor, promote};

/// Replays `cumsum(x, dim, dtype)`: a single row uses CUB, several rows use a kernel without temporary memory
/// (`scan_dim` in `aten/src/ATen/native/cuda/ScanUtils.cuh`).
pub(super) fn cumsum(call: &Call<'_>) {
    call.make();
    let (Some(x), Some(out)) = (call.tensor(0, "self"), call.output(0)) else {
        return;
    };
    let dim = call.int(1, "dim").unwrap_or(0);
    let row = usize::try_from(dim.rem_euclid(x.dim().max(1) as i64)).ok();
    let is_row = row
        .and_then(|row| x.shape().get(row))
        .is_none_or(|&extent| extent == x.numel());
    match (is_row, out.dtype) {
        (true, DType::I64 | DType::I32 | DType::F32) => call.tape.in_cumsum_of_row(&x, out.dtype),
        _ if x.dtype() != out.dtype => drop(call.tape.empty(*x.shape(), out.dtype, "copy to sum")),
        _ => {}
    }
}

/// Replays `bucketize(x, boundaries)` and `searchsorted(sequence, x)`: copies both to one type, and each to a
/// contiguous layout (`searchsorted_maybe_trim_input_tensors` in `aten/src/ATen/native/BucketizationUtils.h`).
pub(super) fn search(call: &Call<'_>) {
    call.make();
    let (Some(x), Some(other)) = (call.tensor(0, "self"), call.tensor(1, "boundaries")) else {
        return;
    };
    let common = promote(x.dtype(), other.dtype());
    let copies = [&x, &other].map(|operand| {
        let fits = operand.dtype() == common && operand.is_contiguous();
        (!fits).then(|| call.tape.empty(*operand.shape(), common, "copy to search"))
    });
    drop(copies);
}

/// Replays `unique_consecutive(x)` of one dimension, whose result has memory for all elements of `x`.
pub(super) fn unique_consecutive(call: &Call<'_>) {
    let Some(x) = call.tensor(0, "self") else {
        return call.make();
    };
    call.make_resized(&x);
    call.tape.in_unique_consecutive(&x);
}

/// Replays `repeat_interleave(repeats)`.
pub(super) fn repeat_interleave(call: &Call<'_>) {
    let repeats = call.tensor(0, "repeats").filter(|x: &Tensor| x.dim() == 1);
    match repeats {
        Some(repeats) => call.tape.in_repeat_interleave(&repeats, || call.make()),
        None => call.make(),
    }
}
