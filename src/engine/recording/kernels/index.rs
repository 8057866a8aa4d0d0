//! Embeddings, and indexing by positions and by masks.

use super::super::value::{TensorRef, Value};
use super::call::Call;
use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::{Storage, Tensor};

/// `embedding_dense_backward(grad, ids, rows, padding, by_frequency)`.
pub(super) fn embedding_backward(call: &Call<'_>) {
    let rows = call.int(2, "num_weights").and_then(|rows| u64::try_from(rows).ok());
    let (Some(grad), Some(ids), Some(rows)) = (call.tensor(0, "grad_output"), call.tensor(1, "indices"), rows) else {
        return call.make();
    };
    let width = if grad.dim() > 0 { grad.last() } else { 1 };
    if grad.numel() / width != ids.numel() || !Call::fit(&[rows, width]) {
        return call.make();
    }
    let dense = call.tape.dense_copy(&grad);
    let table = Dims::new(&[rows, width]);
    call.tape.in_embedding_backward(ids.numel(), table, || call.make());
    drop(dense);
}

/// `nonzero(mask)`.
pub(super) fn nonzero(call: &Call<'_>) {
    match call.tensor(0, "self") {
        Some(mask) => call.tape.in_nonzero(&mask, || call.make()),
        None => call.make(),
    }
}

/// `masked_select(x, mask)`, and `masked_scatter_backward(grad, mask, shape)`, which selects a gradient's elements.
pub(super) fn masked_select(call: &Call<'_>) {
    let marked = call.output(0).map(|out| out.numel());
    let (Some(x), Some(mask), Some(marked)) = (call.tensor(0, "self"), call.tensor(1, "mask"), marked) else {
        return call.make();
    };
    call.tape.in_masked_select(&x, &mask, marked, || call.make());
}

/// `masked_scatter(x, mask, source)`.
pub(super) fn masked_scatter(call: &Call<'_>) {
    call.make();
    if let (Some(x), Some(mask)) = (call.tensor(0, "self"), call.tensor(1, "mask")) {
        call.tape.in_masked_scatter(&x, &mask);
    }
}

/// One index tensor of an operation.
struct Index {
    /// How many elements it picks, where it is a mask.
    marked: Option<u64>,
    /// Dimensions of `x` that it takes.
    dims: usize,
    /// On the GPU, where it is there.
    tensor: Option<Tensor>,
    /// Elements.
    elements: u64,
}

/// The index tensors of `x[…]`, with the dimension at which each begins.
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

/// What masks become, and copies of what lies on the host: an index in 8 bytes for each dimension.
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

/// `x[indices]`.
pub(super) fn index(call: &Call<'_>) {
    let marked = picked(call, call.output(0).map(|out| out.numel()));
    let held = expanded(call, &indices(call, marked));
    call.make();
    drop(held);
}

/// How many elements masks pick, where so many values are read or written in all.
fn picked(call: &Call<'_>, values: Option<u64>) -> Option<u64> {
    let x = call.tensor(0, "self")?;
    let taken: usize = indices(call, None).iter().map(|(_, index)| index.dims).sum();
    let rest: u64 = x.shape().get(taken..)?.iter().product();
    Some(values? / rest.max(1))
}

/// `x[indices] = values`, or `+=`: many to one place are sorted first.
pub(super) fn index_put(call: &Call<'_>) {
    let t = call.tape;
    call.make();
    let Some(x) = call.tensor(0, "self") else { return };
    let values = call.tensor(2, "values");
    let marked = picked(call, values.as_ref().map(Tensor::numel));
    let indices = indices(call, marked);
    let held = expanded(call, &indices);
    if call.is(3, "accumulate") {
        let taken = indices.iter().flat_map(|(at, index)| *at..*at + index.dims);
        let places = taken.filter_map(|dim| x.shape().get(dim)).product();
        let count = indices
            .iter()
            .map(|(_, index)| index.marked.unwrap_or(index.elements))
            .max();
        let columns: usize = indices.iter().map(|(_, index)| index.dims).sum();
        if let (Some(count), Some(values)) = (count.filter(|&n| n > 0), values) {
            // The index of each dimension, of which only extents matter.
            let column = t.view_of(x.storage(), (Dims::new(&[count]), Dims::new(&[1])), DType::I64);
            let linear = t.linear_index(&vec![column; columns.max(1)]);
            drop(held);
            let dense = t.dense_copy(&values);
            t.sort_index(linear, places);
            drop(dense);
        }
    }
}
