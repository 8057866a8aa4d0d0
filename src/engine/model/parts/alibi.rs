//! Biases of attention scores that grow with distance (ALiBi), and what eager attention with them does.

use crate::dtype::DType;
use crate::tape::{Tape, Tensor};

/// `build_alibi_tensor`, [batch × heads, 1, seq] in `dtype`, for token ids [batch, seq] without padding; slopes are narrowed
/// to bf16 if `narrows` (Falcon).
pub(crate) fn linear_biases(t: &Tape, ids: &Tensor, heads: u64, narrows: bool, dtype: DType) -> Tensor {
    let [batch, seq] = [ids.size(0), ids.size(1)];
    let power = 1 << heads.ilog2();
    let part = |n: u64, dtype, name| t.empty([n], dtype, name);
    let _base = t.empty([], DType::F32, "base");
    let _powers = part(power, DType::I32, "arange");
    let mut slopes = part(power, DType::F32, "pow");
    let mut _others = None;
    if power != heads {
        let others = power.min(heads - power);
        let base = t.empty([], DType::F32, "base of the other heads");
        let powers = part(others, DType::I32, "arange");
        slopes = {
            let more = part(others, DType::F32, "pow");
            let joined = part(heads, DType::F32, "cat");
            drop(more);
            joined
        };
        _others = Some((base, powers));
    }
    let steps = {
        let moved = {
            let counted = t.running_sum(ids);
            t.compute(&counted, DType::I64, "minus 1")
        };
        t.compute(&moved, DType::I64, "times the mask")
    };
    let biases = {
        let column = t.unsqueeze(&slopes, 1);
        let column = if narrows {
            t.to_dtype(&column, DType::Bf16)
        } else {
            column
        };
        t.mul(&column, &t.unsqueeze(&steps, 1))
    };
    let flat = t.view(&biases, [batch * heads, 1, seq]);
    drop(biases);
    t.to_dtype(&flat, dtype)
}

/// `_merge_heads`: [batch × heads, seq, width] → [batch, seq, hidden].
pub(crate) fn merged(t: &Tape, out: &Tensor, heads: u64) -> Tensor {
    let [batch, seq, width] = [out.size(0) / heads, out.size(1), out.size(2)];
    let split = t.view(out, [batch, heads, seq, width]);
    t.reshape(&t.permute(&split, &[0, 2, 1, 3]), [batch, seq, heads * width])
}
