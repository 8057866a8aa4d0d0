//! Embeddings, and indexing by positions and by masks.

use super::super::value::{TensorRef, Value};
use super::call::Call;
use crate::dtype::DType;
use crate::tape::dims::{Dims, is_contiguous};
use crate::tape::{Storage, Tensor};

/// Replays `embedding(weight, ids)`.
pub(super) fn embedding(call: &Call<'_>) {
    let flat = call.tensor(1, "indices").and_then(|ids| call.tape.flat_ids(&ids));
    call.make();
    drop(flat);
}

/// Replays `embedding_dense_backward(grad, ids, rows, padding, by_frequency)`.
pub(super) fn embedding_backward(call: &Call<'_>) {
    let rows = call.int(2, "num_weights").and_then(|rows| u64::try_from(rows).ok());
    let (Some(grad), Some(ids), Some(rows)) = (call.tensor(0, "grad_output"), call.tensor(1, "indices"), rows) else {
        return call.make();
    };
    let width = if grad.dim() > 0 { grad.last() } else { 1 };
    if grad.numel() / width != ids.numel() || !Call::fit(&[rows, width]) {
        return call.make();
    }
    let dense = (call.tape.dense_copy(&grad), call.tape.dense_copy(&ids));
    let table = Dims::new(&[rows, width]);
    call.tape.in_embedding_backward(ids.numel(), table, || call.make());
    drop(dense);
}

/// Replays `_embedding_bag_backward(grad, indices, …)` of sums, whose argument `num_weights` has the index `at`.
pub(super) fn embedding_bag_backward(call: &Call<'_>, at: usize) {
    let rows = call.int(at, "num_weights").and_then(|rows| u64::try_from(rows).ok());
    let (Some(grad), Some(ids), Some(rows)) = (call.tensor(0, "grad"), call.tensor(1, "indices"), rows) else {
        return call.make();
    };
    let width = if grad.dim() > 0 { grad.last() } else { 1 };
    if !Call::fit(&[rows, width]) {
        return call.make();
    }
    call.tape
        .in_sorted_embedding_backward(ids.numel(), Dims::new(&[rows, width]), || call.make());
}

/// Replays `nonzero(mask)`.
pub(super) fn nonzero(call: &Call<'_>) {
    match call.tensor(0, "self") {
        Some(mask) => call.tape.in_nonzero(&mask, || call.make()),
        None => call.make(),
    }
}

/// Replays `masked_select(x, mask)`, and `masked_scatter_backward(grad, mask, shape)`, which selects elements of a
/// gradient.
pub(super) fn masked_select(call: &Call<'_>) {
    let marked = call.output(0).map(|out| out.numel());
    let (Some(x), Some(mask), Some(marked)) = (call.tensor(0, "self"), call.tensor(1, "mask"), marked) else {
        return call.make();
    };
    call.tape.in_masked_select(&x, &mask, marked, || call.make());
}

/// Replays `masked_scatter(x, mask, source)`.
pub(super) fn masked_scatter(call: &Call<'_>) {
    call.make();
    if let (Some(x), Some(mask)) = (call.tensor(0, "self"), call.tensor(1, "mask")) {
        call.tape.in_masked_scatter(&x, &mask);
    }
}

/// Index tensor of an operation.
struct Index {
    /// Number of elements that it picks, if it is a mask.
    marked: Option<u64>,
    /// Number of dimensions of `x` that it indexes.
    dims: usize,
    /// Tensor on the GPU; `None` if it lies on the host.
    tensor: Option<Tensor>,
    /// Number of elements.
    elements: u64,
}

/// Returns the index tensors of `x[…]`, each with its first dimension of `x`.
fn indices(call: &Call<'_>, marked: Option<u64>) -> Vec<(usize, Index)> {
    let Value::List(all) = call.value(1, "indices") else {
        return Vec::new();
    };
    let mut at = 0;
    let mut found = Vec::new();
    for value in all {
        let index = match value {
            Value::Tensor(tensor) => one(call, tensor, marked),
            _ => None,
        };
        let dims = index.as_ref().map_or(1, |index| index.dims);
        found.extend(index.map(|index| (at, index)));
        at += dims;
    }
    found
}

fn one(call: &Call<'_>, tensor: &TensorRef, marked: Option<u64>) -> Option<Index> {
    let layout = call.layout(tensor)?;
    let mask = matches!(layout.dtype, DType::Bool | DType::U8);
    Some(Index {
        marked: marked.filter(|_| mask),
        dims: if mask { layout.shape.len() } else { 1 },
        tensor: call.seen(tensor),
        elements: layout.numel(),
    })
}

/// Allocates the indices of masks and copies of tensors on the host: 8 bytes for each index in each dimension.
fn expanded(call: &Call<'_>, indices: &[(usize, Index)]) -> Vec<Storage> {
    let t = call.tape;
    let mut held = Vec::new();
    for (_, index) in indices {
        match (&index.tensor, index.marked) {
            (Some(mask), Some(marked)) => held.push(t.nonzero(mask, marked).storage().clone()),
            (None, marked) => {
                let count = marked.unwrap_or(index.elements);
                let copies = (0..index.dims).map(|_| t.empty([count], DType::I64, "copy of the index"));
                held.extend(copies.map(|copy| copy.storage().clone()));
            }
            (Some(_), None) => {}
        }
    }
    held
}

/// Copies index tensors if their layouts differ after broadcasting (`AdvancedIndex` in
/// `aten/src/ATen/native/TensorAdvancedIndexing.cpp`).
fn aligned(call: &Call<'_>, indices: &[(usize, Index)]) -> Vec<Storage> {
    let mut lie: Vec<(Dims, Dims)> = Vec::new();
    for (_, index) in indices {
        match (&index.tensor, index.marked) {
            (_, Some(marked)) => {
                let column = (Dims::new(&[marked]), Dims::new(&[index.dims as u64]));
                lie.extend(vec![column; index.dims]);
            }
            (Some(tensor), None) => lie.push((*tensor.shape(), *tensor.strides())),
            (None, None) => {
                let row = Dims::new(&[index.elements]);
                lie.push((row, row.contiguous_strides()));
            }
        }
    }
    let shape = lie
        .iter()
        .try_fold(Dims::new(&[]), |all, (shape, _)| broadcast(&all, shape));
    let Some(shape) = shape.filter(|shape| lie.len() > 1 && Call::fit(shape)) else {
        return Vec::new();
    };
    let strides: Vec<Dims> = lie
        .iter()
        .map(|(own, strides)| stretched((own, strides), &shape))
        .collect();
    if strides.windows(2).all(|two| two[0] == two[1]) {
        return Vec::new();
    }
    let apart = strides.iter().filter(|strides| !is_contiguous(&shape, strides));
    let copy = |_: &Dims| call.tape.empty(shape, DType::I64, "contiguous copy of the index");
    apart.map(|strides| copy(strides).storage().clone()).collect()
}

/// Returns the broadcast shape of both; `None` if they do not match.
fn broadcast(a: &Dims, b: &Dims) -> Option<Dims> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = *long;
    for (out, &extent) in out.iter_mut().rev().zip(short.iter().rev()) {
        match (*out, extent) {
            (all, 1) => *out = all,
            (all, own) if all == 1 || all == own => *out = own,
            _ => return None,
        }
    }
    Some(out)
}

/// Returns the strides of a tensor expanded to a shape (`inferExpandGeometry`).
fn stretched((own, strides): (&Dims, &Dims), shape: &Dims) -> Dims {
    let mut out = *shape;
    let lead = shape.len() - own.len();
    for i in (0..shape.len()).rev() {
        let (extent, stride) = match i.checked_sub(lead) {
            Some(i) => (own[i], strides[i]),
            None if i + 1 < shape.len() => (1, shape[i + 1].saturating_mul(out[i + 1])),
            None => (1, 1),
        };
        out[i] = if extent == shape[i] { stride } else { 0 };
    }
    out
}

/// Replays `x[indices]`.
pub(super) fn index(call: &Call<'_>) {
    let marked = picked(call, call.output(0).map(|out| out.numel()));
    let indices = indices(call, marked);
    let held = expanded(call, &indices);
    let aligned = aligned(call, &indices);
    call.make();
    drop((aligned, held));
}

/// Returns the number of elements that masks pick, if `values` elements are read or written in total.
fn picked(call: &Call<'_>, values: Option<u64>) -> Option<u64> {
    let x = call.tensor(0, "self")?;
    let indices = indices(call, None);
    let taken = |dim: usize| indices.iter().any(|(at, index)| (*at..*at + index.dims).contains(&dim));
    let rest: u64 = (0..x.dim()).filter(|&dim| !taken(dim)).map(|dim| x.size(dim)).product();
    Some(values? / rest.max(1))
}

/// Replays `x[indices] = values`, or `+=`, which sorts its indices first.
pub(super) fn index_put(call: &Call<'_>) {
    let t = call.tape;
    call.make();
    let Some(x) = call.tensor(0, "self") else { return };
    // A value on the host is copied to the card.
    let on_host = match call.value(2, "values") {
        Value::Tensor(tensor) if tensor.storage.is_none() => call.layout(tensor),
        _ => None,
    };
    let copied = on_host.map(|layout| t.empty(layout.shape, layout.dtype, "copy of the value"));
    let values = call.tensor(2, "values");
    // Values without elements have no memory either.
    let is_empty = match call.value(2, "values") {
        Value::Tensor(tensor) => call.layout(tensor).is_some_and(|layout| layout.shape.numel() == 0),
        _ => false,
    };
    let count = values.as_ref().map(Tensor::numel).or(is_empty.then_some(0));
    let marked = picked(call, count);
    let indices = indices(call, marked);
    let accumulates = call.is(3, "accumulate");
    let sorts_host_index = accumulates && indices.iter().all(|(_, index)| index.tensor.is_none());
    let held = match sorts_host_index {
        true => Vec::new(),
        false => expanded(call, &indices),
    };
    if accumulates {
        let taken = indices.iter().flat_map(|(at, index)| *at..*at + index.dims);
        let places = taken.filter_map(|dim| x.shape().get(dim)).product();
        let count = indices
            .iter()
            .map(|(_, index)| index.marked.unwrap_or(index.elements))
            .max();
        let columns: usize = indices.iter().map(|(_, index)| index.dims).sum();
        if let (Some(count), Some(values)) = (count.filter(|&n| n > 0), values) {
            // Index of each dimension, of which only the extents matter.
            let column = t.view_of(x.storage(), (Dims::new(&[count]), Dims::new(&[1])), DType::I64);
            // An index on the host is made linear there, and then copied.
            let linear = match sorts_host_index {
                true => t.empty([count], DType::I64, "copy of the index"),
                false => t.linear_index(&vec![column; columns.max(1)]),
            };
            drop(held);
            let dense = t.dense_copy(&values);
            t.sort_index(linear, places);
            drop(dense);
        }
    }
    drop(copied);
}
