//! Matrix products: workspaces of libraries, and copies of operands whose layouts cuBLAS does not support.

use super::call::Call;
use crate::dtype::DType;

/// Replays a product by cuBLAS.
pub(super) fn product(name: &str, call: &Call<'_>) {
    call.make();
    let first = usize::from(matches!(
        name,
        "baddbmm" | "baddbmm_" | "addbmm" | "addbmm_" | "addmv" | "addmv_"
    ));
    let operands = [call.tensor(first, "mat1"), call.tensor(first + 1, "mat2")];
    if operands.iter().all(Option::is_some) {
        call.tape.cublas();
    }
    let copies: Vec<_> = operands
        .iter()
        .flatten()
        .filter_map(|operand| call.tape.ready_for_cublas(operand))
        .collect();
    drop(copies);
}

/// Replays `addmm(bias, a, b)`: a bias of one dimension is added by cuBLASLt's epilogue (`isInputCompliesAddmmCudaLt`
/// in `aten/src/ATen/native/cuda/Blas.cpp`).
pub(super) fn addmm(call: &Call<'_>) {
    let (Some(a), Some(b)) = (call.tensor_of(1, "mat1", 2), call.tensor_of(2, "mat2", 2)) else {
        return call.make();
    };
    call.make();
    let bias = call.tensor_of(0, "self", 1);
    let whole = matches!(call.number(3, "beta"), None | Some(1.0));
    let bias = bias.filter(|bias| bias.is_contiguous() && bias.size(0) == b.size(1));
    let floats = matches!(a.dtype(), DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
    if bias.is_some() && whole && floats && b.size(0) > 1 && b.size(1) > 1 {
        call.tape.cublaslt();
    } else {
        call.tape.cublas();
    }
    let copies = [&a, &b].map(|operand| call.tape.ready_for_cublas(operand));
    drop(copies);
}

/// Replays a product that only cuBLASLt supports.
pub(super) fn lt(call: &Call<'_>) {
    call.make();
    call.tape.cublaslt();
}

/// Replays `_grouped_mm(a, b, offsets, …)`, a product for each expert; returns false if its memory is unknown.
pub(super) fn grouped(call: &Call<'_>) -> bool {
    call.make();
    let (Some(a), Some(b)) = (call.tensor(0, "self"), call.tensor(1, "mat2")) else {
        return true;
    };
    let ends = call.tensor(2, "offs").map(|ends| ends.numel());
    let experts = ends.unwrap_or_else(|| {
        if a.dim() == 3 {
            a.size(0)
        } else {
            b.shape().first().copied().unwrap_or(1)
        }
    });
    let is_measured = call.tape.in_grouped_mm(experts, a.dtype());
    call.name.starts_with("aten._grouped_mm") && is_measured
}

/// Replays `linalg_solve_triangular(a, b, …)`.
pub(super) fn triangular_solve(call: &Call<'_>) {
    call.make();
    if let Some(a) = call.tensor(0, "self").filter(|a| a.dim() > 1) {
        call.tape.in_triangular_solve(&a);
    }
}
