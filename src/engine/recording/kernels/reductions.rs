//! Reductions: buffers in which thread blocks share partial results, and copies in the type of the sum.

use super::super::value::Value;
use super::call::Call;
use crate::dtype::DType;
use crate::optim::in_foreach_norm;
use crate::tape::{Tape, Tensor};

/// Kind of a reduction, which determines its buffers.
enum Reduction {
    /// Sum in the type of the result, or in fp32 for 16-bit floats.
    Sum,
    /// Extreme in the type of the operand.
    Extreme,
    /// Boolean.
    Truth,
    /// Value with its index, or running moments.
    Pair,
}

impl Reduction {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sum" | "mean" | "nansum" | "prod" | "norm" | "linalg_vector_norm" => Self::Sum,
            "amax" | "amin" | "max" | "min" => Self::Extreme,
            "any" | "all" => Self::Truth,
            "argmax" | "argmin" | "var" | "std" | "var_mean" | "std_mean" | "var_correction" => Self::Pair,
            _ => return None,
        })
    }
}

/// Allocates the results and buffers of a reduction; for any other operation only its results.
pub(super) fn reduction(name: &str, call: &Call<'_>) {
    call.make();
    let (Some(kind), Some(x)) = (Reduction::named(name), call.tensor(0, "self")) else {
        return;
    };
    let binary = matches!(call.value(1, "other"), Value::Tensor(_));
    let Some(reduced) = (!binary).then(|| dims(name, call, &x)).flatten() else {
        return;
    };
    // With a dimension, the extreme comes with its index.
    let kind = match kind {
        Reduction::Extreme if name.len() == 3 && matches!(call.value(1, "dim"), Value::Int(_)) => Reduction::Pair,
        kind => kind,
    };
    match kind {
        Reduction::Sum => {
            let out = call.output(0).map_or(x.dtype(), |out| out.dtype);
            let widens = x.dtype() != out && !(x.dtype().is_half() && out == DType::F32);
            let wide = widens.then(|| call.tape.empty_like(&x, out, "copy in the type that is summed"));
            sum_of(call.tape, wide.as_ref().unwrap_or(&x), &reduced);
        }
        Reduction::Extreme => call.tape.in_reduction(&x, &reduced, x.dtype().width()),
        Reduction::Truth => call.tape.in_reduction(&x, &reduced, 1),
        Reduction::Pair => call.tape.in_reduction(&x, &reduced, 16),
    }
}

/// Allocates the buffers of a sum.
pub(super) fn sum_of(tape: &Tape, x: &Tensor, reduced: &[bool]) {
    tape.in_reduction(x, reduced, x.dtype().width().max(4));
}

/// Returns the reduced dimensions: the named ones, or all.
fn dims(name: &str, call: &Call<'_>, x: &Tensor) -> Option<Vec<bool>> {
    let at = match name {
        "norm" | "linalg_vector_norm" => 2,
        _ => 1,
    };
    let named = match call.value(at, "dim") {
        Value::Null | Value::Dtype(_) | Value::Bool(_) | Value::Float(_) => Vec::new(),
        _ => call.ints(at, "dim")?,
    };
    let rank = x.dim() as i64;
    let mut reduced = vec![named.is_empty(); x.dim()];
    for dim in named {
        *reduced.get_mut(usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?)? = true;
    }
    Some(reduced)
}

/// Replays `pow(number, x)`: the number becomes a tensor on the GPU (`aten/src/ATen/native/Pow.cpp`,
/// `pow(const Scalar&, const Tensor&)`).
pub(super) fn power(call: &Call<'_>) {
    let dtype = match call.value(0, "self") {
        Value::Int(_) => Some(DType::I64),
        Value::Float(_) => Some(DType::F64),
        _ => None,
    };
    let base = dtype.map(|dtype| call.tape.empty([], dtype, "base"));
    call.make();
    drop(base);
}

/// Replays `_foreach_norm(tensors, …)`.
pub(super) fn foreach_norm(call: &Call<'_>) {
    let mut counts = Vec::new();
    call.value(0, "self")
        .tensors(&mut |tensor| counts.extend(call.layout(tensor).map(|layout| layout.numel())));
    match counts.iter().max() {
        Some(&largest) => in_foreach_norm(call.tape, counts.len() as u64, largest, || call.make()),
        None => call.make(),
    }
}
