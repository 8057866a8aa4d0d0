//! T5's relative positions: a bias of attention's scores for each distance (`compute_bias`).

use crate::dtype::DType;
use crate::nn::{self, Embedding};
use crate::tape::{Tape, Tensor};

/// Bias [1, heads, queries, keys] of a decoder that sees what came before, looked up in a table [buckets, heads].
pub(super) fn relative_bias(t: &Tape, table: &Embedding, [queries, keys]: [u64; 2]) -> Tensor {
    let context = {
        let _arange = nn::ids(t, &[queries], "arange");
        nn::ids(t, &[queries, 1], "positions of queries")
    };
    let memory = nn::ids(t, &[1, keys], "positions of keys");
    let relative = nn::ids(t, &[queries, keys], "relative positions");
    let buckets = buckets(t, &relative);
    let values = table.call(t, &buckets);
    let values = t.unsqueeze(&t.permute(&values, &[2, 0, 1]), 0);
    drop((context, memory, relative));
    values
}

/// `_relative_position_bucket`: the bucket of each distance, of which far ones share some.
fn buckets(t: &Tape, relative: &Tensor) -> Tensor {
    let whole = |name| t.compute(relative, DType::I64, name);
    let float = |name| t.compute(relative, DType::F32, name);
    let distance = {
        let least = {
            let _zeros = whole("zeros");
            whole("minimum")
        };
        let distance = whole("neg");
        drop(least);
        distance
    };
    let is_small = t.compute(relative, DType::Bool, "comparison");
    let large = {
        let mut far = float("distance as fp32");
        for name in ["div", "log", "div", "mul"] {
            far = float(name);
        }
        let narrowed = whole("to int64");
        drop(far);
        let large = whole("add");
        drop(narrowed);
        large
    };
    let capped = {
        let _last = whole("full_like");
        whole("minimum")
    };
    drop(large);
    let found = {
        let chosen = whole("where");
        let found = whole("add");
        drop(chosen);
        found
    };
    drop((distance, is_small, capped));
    found
}
