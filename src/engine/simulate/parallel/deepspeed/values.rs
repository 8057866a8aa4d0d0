//! Checks and norms of gradients, which take small tensors (`deepspeed/runtime/utils.py`).

use crate::dtype::DType;
use crate::tape::work::{Class, HostOp};
use crate::tape::{Tape, Tensor};

/// A single value.
fn value(t: &Tape, dtype: DType, name: &'static str) -> Tensor {
    t.empty([], dtype, name)
}

/// A single value in double.
pub(super) fn double(t: &Tape, name: &'static str) -> Tensor {
    value(t, DType::F64, name)
}

/// `torch.isfinite(x)` of so many values: `(x.abs() != inf) * (x == x)`.
fn is_finite(t: &Tape, count: u64, dtype: DType) -> Tensor {
    let abs = t.empty([count], dtype, "abs");
    let differs = t.empty([count], DType::Bool, "is not infinite");
    let same = t.empty([count], DType::Bool, "is a number");
    let out = t.empty([count], DType::Bool, "is finite");
    drop((same, differs, abs));
    out
}

/// Reduction of all of `x` to one value, whose partial results have `accumulator` bytes.
fn reduced(t: &Tape, x: &Tensor, (dtype, accumulator): (DType, u64), name: &'static str) -> Tensor {
    let mark = t.work_mark();
    let out = value(t, dtype, name);
    t.in_reduction(x, &vec![true; x.dim()], accumulator);
    let read = x.numel() * x.dtype().width();
    t.ran_as(mark, (name, Class::Pointwise), x.dtype(), [read, dtype.width()], [0; 4]);
    out
}

/// Notes that an engine's step begins: its Python, and the small kernels that it launches for each parameter, take the time of
/// an optimizer of this name.
pub(super) fn begin_step<'a>(t: &Tape, name: &'static str, params: impl Iterator<Item = &'a Tensor>) {
    t.host_op(HostOp::Step(name));
    params.for_each(|param| t.host_op(HostOp::Parameter(name, param.dim() >= 2)));
}

/// `grad.mul_(1 / combined_scale)` of so many elements in fp32.
pub(super) fn scale_in_place(t: &Tape, elements: u64) {
    let bytes = elements * DType::F32.width();
    t.launch(t.kernel("mul_", Class::Pointwise, DType::F32, [bytes, bytes]));
}

/// Copies so many parameters in fp32 to those that the model has.
pub(super) fn narrow(t: &Tape, elements: u64, dtype: DType) {
    let bytes = [DType::F32, dtype].map(|dtype| elements * dtype.width());
    t.launch(t.kernel("to dtype", Class::Pointwise, DType::F32, bytes));
}

/// Gives a part of the parameters in fp32 its gradients, which lie in `flat`, or are a single one of `parts`: copied to fp32,
/// unless they are in it already (`.to(dtype)`).
pub(super) fn hold(t: &Tape, master: &Tensor, (flat, parts): (Option<&Tensor>, &[Tensor])) {
    match flat.or(parts.first()).filter(|gradient| gradient.dtype() == DType::F32) {
        Some(gradient) => t.give_gradient(master, &t.view(gradient, [gradient.numel()])),
        None => master.hold_gradient(t),
    }
}

/// `clip_grad_norm_` of `deepspeed/runtime/utils.py`, of gradients in fp32.
pub(super) fn clip_wide(t: &Tape, gradients: &[Tensor]) {
    let of = (DType::F32, DType::F32.width());
    let norms: Vec<Tensor> = gradients
        .iter()
        .map(|x| reduced(t, x, of, "norm of a gradient"))
        .collect();
    let stacked = t.empty([norms.len() as u64], DType::F32, "norms of gradients");
    let squares = t.empty([norms.len() as u64], DType::F32, "squares of norms");
    drop(stacked);
    drop((reduced(t, &squares, of, "sum of squares"), squares, norms));
    scaled(t, DType::F32);
}

/// `has_inf_or_nan(x)`.
pub(super) fn has_inf_or_nan(t: &Tape, x: &Tensor) -> Tensor {
    let bounds = ["amax", "amin"].map(|name| {
        let bound = reduced(t, x, (x.dtype(), x.dtype().width()), name);
        let finite = is_finite(t, 1, x.dtype());
        drop(bound);
        finite
    });
    let both = value(t, DType::Bool, "are finite");
    drop(bounds);
    let out = value(t, DType::Bool, "has inf or nan");
    drop(both);
    out
}

/// `torch.isinf(x).any()` and `torch.isnan(x).any()`: the first compares absolute values.
pub(super) fn look_for_overflow(t: &Tape, x: &Tensor) {
    for takes_absolutes in [true, false] {
        let absolutes = takes_absolutes.then(|| t.empty_like(x, x.dtype(), "abs"));
        let found = t.empty_like(x, DType::Bool, "is infinite or no number");
        drop(absolutes);
        drop(reduced(t, &found, (DType::Bool, DType::Bool.width()), "any"));
    }
}

/// `is_invalid_grad_norm(norm)`, which the host reads.
pub(super) fn is_invalid(t: &Tape) -> Tensor {
    let is_invalid = are_invalid(t, 1, DType::F32);
    t.wait();
    is_invalid
}

/// Whether any of so many norms is invalid.
fn are_invalid(t: &Tape, count: u64, dtype: DType) -> Tensor {
    let finite = is_finite(t, count, dtype);
    let not = t.empty([count], DType::Bool, "is not finite");
    drop(finite);
    let negative = t.empty([count], DType::Bool, "is negative");
    let either = t.empty([count], DType::Bool, "is invalid");
    drop((not, negative));
    let any = value(t, DType::Bool, "any");
    drop(either);
    any
}

/// `torch.linalg.vector_norm(x.to(float64))`.
pub(super) fn double_norm(t: &Tape, x: &Tensor) -> Tensor {
    let wide = t.empty_like(x, DType::F64, "gradient in double");
    let norm = reduced(t, &wide, (DType::F64, DType::F64.width()), "norm of a gradient");
    drop(wide);
    norm
}

/// The norm of all from those of each: `torch.stack(norms).pow(2).sum().float()`, summed over the GPUs, then its root.
pub(super) fn norm_of_group(t: &Tape, norms: Vec<Tensor>) -> Tensor {
    let total = {
        let stacked = t.empty([norms.len() as u64], DType::F64, "norms of gradients");
        let squares = t.empty([norms.len() as u64], DType::F64, "squares of norms");
        drop(stacked);
        let sum = reduced(t, &squares, (DType::F64, DType::F64.width()), "sum of squares");
        drop(squares);
        let total = value(t, DType::F32, "sum of squares in fp32");
        drop(sum);
        total
    };
    let root = value(t, DType::F32, "norm of a group");
    drop(total);
    mask_invalid(t);
    drop(norms);
    root
}

/// `mask_nan_or_inf_with_val_inplace`.
pub(super) fn mask_invalid(t: &Tape) {
    let infinite = value(t, DType::Bool, "is infinite");
    let nan = value(t, DType::Bool, "is no number");
    let either = value(t, DType::Bool, "is either");
    let replacement = value(t, DType::F32, "-1");
    drop((infinite, nan, either, replacement));
}

/// `combine_grad_norm_groups` of norms of so many groups.
pub(super) fn combined(t: &Tape, groups: u64) -> Tensor {
    combined_as(t, groups, DType::F32)
}

fn combined_as(t: &Tape, groups: u64, dtype: DType) -> Tensor {
    let stacked = t.empty([groups], dtype, "norms of groups");
    let invalid = are_invalid(t, groups, dtype);
    let norm = reduced(t, &stacked, (dtype, dtype.width()), "norm of all");
    let infinity = value(t, dtype, "infinity");
    let out = value(t, dtype, "total norm");
    drop((infinity, stacked, invalid, norm));
    out
}

/// `unscale_and_clip_grads` of one gradient in place, by a total norm and a loss scale of 1.
pub(super) fn clip(t: &Tape) {
    drop(is_invalid(t));
    scaled(t, DType::F32);
}

/// `unscale_and_clip_grads` of stage 3, by a norm in double.
pub(super) fn clip_double(t: &Tape) {
    scaled(t, DType::F64);
}

/// Multiplies a gradient in place by a limit over a norm.
fn scaled(t: &Tape, dtype: DType) {
    let scalar = |name| value(t, dtype, name);
    let norm = scalar("norm / scale");
    let shifted = scalar("norm + 1e-6");
    drop(norm);
    let ratio = scalar("norm / limit");
    drop(shifted);
    let clamped = scalar("clamped ratio");
    drop(ratio);
    let combined = scalar("combined scale");
    let inverse = scalar("1 / scale");
    let factor = scalar("factor");
    drop(inverse);
    drop((factor, combined, clamped));
}

/// `get_weight_norm`: each gradient passes through fp32, and the squares of the norms are summed one by one.
pub(super) fn weight_norm(t: &Tape, gradients: &[Tensor]) {
    let scalar = |name| value(t, DType::F32, name);
    let (mut norm, mut total): (Option<Tensor>, Option<Tensor>) = (None, None);
    for gradient in gradients {
        let wide = t.empty_like(gradient, DType::F32, "gradient in fp32");
        norm.replace(reduced(
            t,
            &wide,
            (DType::F32, DType::F32.width()),
            "norm of a gradient",
        ));
        drop(wide);
        let square = scalar("square of a norm");
        total.get_or_insert_with(|| scalar("sum of squares"));
        drop(square);
    }
    let summed = t.empty([1], DType::F32, "sum of squares over the GPUs");
    drop((summed, norm, total));
}

/// `get_grad_norm_direct` of the gradients of a group, in double.
pub(super) fn norm_of_parts(t: &Tape, parts: &[Tensor]) -> Tensor {
    let norms: Vec<Tensor> = parts.iter().map(|part| double_norm(t, part)).collect();
    let squares = {
        let _stacked = t.empty([norms.len() as u64], DType::F64, "norms of gradients");
        t.empty([norms.len() as u64], DType::F64, "squares of norms")
    };
    let sum = reduced(t, &squares, (DType::F64, DType::F64.width()), "sum of squares");
    drop(squares);
    let root = double(t, "norm of a group");
    let infinite = value(t, DType::Bool, "is infinite");
    let nan = value(t, DType::Bool, "is no number");
    let either = value(t, DType::Bool, "is either");
    let replacement = value(t, DType::F32, "-1");
    let out = double(t, "norm or -1");
    drop((replacement, either, nan, infinite, root, sum, norms));
    out
}

/// `combine_grad_norm_groups` of norms in double.
pub(super) fn combined_doubles(t: &Tape, groups: u64) -> Tensor {
    combined_as(t, groups, DType::F64)
}

/// `is_invalid_grad_norm(norm)` of a norm in double.
pub(super) fn is_invalid_double(t: &Tape) -> Tensor {
    let is_invalid = are_invalid(t, 1, DType::F64);
    t.wait();
    is_invalid
}
