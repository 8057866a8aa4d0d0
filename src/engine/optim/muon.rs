//! `torch.optim.Muon` (`torch/optim/_muon.py`, 2.9 to 2.11) for the matrices of a model's blocks, and AdamW for everything
//! else: embeddings, the head, and what is no matrix.
//!
//! Over FSDP2's `DTensor`s, which have a part of the rows, products gather or sum what they need of other GPUs. What they do
//! (`torch/distributed/tensor/_ops/_matrix_ops.py`) was read off recorded steps of 2 and 8 GPUs, of tall, wide and square
//! matrices.

use super::work::{Form, Pass, in_place, note_parameter};
use super::{Optimizer, States};
use crate::dtype::DType;
use crate::tape::work::Beside;
use crate::tape::{Component, Tape, Tensor};

/// Steps of the Newton-Schulz iteration (`ns_steps`).
const ITERATIONS: usize = 5;

/// One matrix after the other; the second group, AdamW's, has a form of its own.
pub(super) static MUON: Form = Form {
    name: "muon",
    lists: None,
    update: Optimizer::muon,
};

/// In-place kernels of one matrix in its own type: the momentum, then decay and update of the parameter.
const IN_PLACE: [Pass; 3] = [("lerp_", 2, 1), ("mul_", 1, 1), ("add_", 2, 1)];

/// Splits parameters into the matrices that Muon trains and the others, each in order.
pub(super) fn by_shape(t: &Tape, params: Vec<Tensor>) -> [Vec<Tensor>; 2] {
    let is_hidden = |p: &Tensor| {
        let of_head = t.component_of_scope(t.scope_of(p)) == Component::Head;
        p.dim() == 2 && !of_head && !t.is_table(p)
    };
    let (matrices, others) = params.into_iter().partition(is_hidden);
    [matrices, others]
}

impl Optimizer {
    /// Makes the momentum of all matrices, then runs `_single_tensor_muon`. Its variable `update` lives until the next
    /// matrix's replaces it.
    fn muon(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() && p.grad().is_some() {
                *states = States(vec![Self::state(t, p, "momentum_buffer")]);
            }
        }
        let mut update = None;
        for p in &self.params {
            let Some(grad) = p.grad() else { continue };
            note_parameter(t, MUON.name, p);
            // `grad.lerp(buf, momentum)`
            let momentum = t.empty_like(&grad, grad.dtype(), "Nesterov momentum");
            drop(update.replace(momentum.clone()));
            let made = match self.world {
                1 => orthogonal(t, &momentum),
                world => orthogonal_of_shards(t, &momentum, world),
            };
            drop(momentum);
            drop(update.replace(made));
            in_place(t, p, &IN_PLACE, p.dtype());
        }
    }
}

/// `_zeropower_via_newtonschulz`, in bf16: a matrix with more rows than columns is transposed, so that its Gram matrix is the
/// smaller one.
fn orthogonal(t: &Tape, update: &Tensor) -> Tensor {
    let is_tall = update.size(0) > update.size(1);
    let transposed = |x: &Tensor| if is_tall { t.transpose(x, 0, 1) } else { x.clone() };
    let mut x = transposed(&t.to_dtype(update, DType::Bf16));
    let norm = t.reduce_all(&x, "norm");
    let clamped = t.clamp_min(&norm);
    drop(norm);
    drop(clamped);
    // Python rebinds its variables: tensors of an iteration live until those of the next one replace them.
    let (mut last_gram, mut last_update) = (None, None);
    for _ in 0..ITERATIONS {
        let gram = t.mm(&x, &t.transpose(&x, 0, 1));
        drop(last_gram.replace(gram.clone()));
        let gram_update = t.addmm_of(&gram, &gram, &gram);
        drop(last_update.replace(gram_update.clone()));
        x = t.addmm_of(&x, &gram_update, &x);
    }
    transposed(&x)
}

/// Orthogonalizes a matrix of which this GPU has some rows, as [`orthogonal`] does a whole one.
fn orthogonal_of_shards(t: &Tape, update: &Tensor, world: u64) -> Tensor {
    let is_tall = update.size(0) * world > update.size(1);
    let narrow = t.to_dtype(update, DType::Bf16);
    divide_by_norm(t, &narrow);
    if !is_tall {
        return of_rows(t, narrow, world);
    }
    let transposed = t.transpose(&narrow, 0, 1);
    drop(narrow);
    t.transpose(&of_columns(t, transposed), 0, 1)
}

/// Divides a part of a matrix by the norm of the whole, whose square is summed over the GPUs.
fn divide_by_norm(t: &Tape, x: &Tensor) {
    let scalar = |name| t.empty([], DType::Bf16, name);
    let norm = t.reduce_all(x, "norm");
    let square = scalar("square of a norm");
    let summed = scalar("sum of squares");
    t.collective_at_once(Beside::AllReduce, DType::Bf16.width());
    let root = scalar("norm of the whole");
    drop((square, summed));
    let clamped = t.clamp_min(&root);
    drop((root, norm));
    drop(clamped);
}

/// The iteration on a transposed matrix of which this GPU has columns: its Gram matrix is a sum over the GPUs.
fn of_columns(t: &Tape, mut x: Tensor) -> Tensor {
    let sum = |part: &Tensor| {
        let sum = t.empty_like(part, DType::Bf16, "sum over the GPUs");
        t.collective_at_once(Beside::AllReduce, part.numel() * DType::Bf16.width());
        sum
    };
    let (mut last_gram, mut last_update) = (None, None);
    for _ in 0..ITERATIONS {
        let gram = t.mm(&x, &t.transpose(&x, 0, 1));
        drop(last_gram.replace(gram.clone()));
        let whole = sum(&gram);
        let gram_update = t.addmm_of(&gram, &gram, &whole);
        drop(whole);
        drop(last_update.replace(gram_update.clone()));
        let whole = sum(&gram_update);
        let next = t.addmm_of(&x, &whole, &x);
        drop(whole);
        x = next;
    }
    x
}

/// The iteration on a matrix of which this GPU has rows: each product gathers its right side.
fn of_rows(t: &Tape, mut x: Tensor, world: u64) -> Tensor {
    let gather = |rows: &Tensor| {
        let whole = t.empty([rows.size(0) * world, rows.size(1)], DType::Bf16, "rows of all GPUs");
        t.collective_at_once(Beside::AllGather, whole.numel() * DType::Bf16.width());
        whole
    };
    let (mut last_gram, mut last_update) = (None, None);
    for _ in 0..ITERATIONS {
        let transposed = {
            let columns = t.empty([x.size(1), x.size(0)], DType::Bf16, "contiguous");
            let gathered = gather(&columns);
            let whole = t.empty([x.size(1), x.size(0) * world], DType::Bf16, "columns of all GPUs");
            drop((gathered, columns));
            whole
        };
        let gram = t.mm(&x, &transposed);
        drop(transposed);
        drop(last_gram.replace(gram.clone()));
        let whole = gather(&gram);
        let gram_update = t.addmm_of(&gram, &gram, &whole);
        drop(whole);
        drop(last_update.replace(gram_update.clone()));
        let whole = gather(&x);
        let next = t.addmm_of(&x, &gram_update, &whole);
        drop(whole);
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;
    use crate::tape::Gpu;

    /// Bytes that the second update of one matrix asks for, without workspaces and scalars.
    fn update(shape: [u64; 2], dtype: DType) -> Vec<u64> {
        update_over(shape, dtype, 1)
    }

    /// Bytes that the second update of one of several GPUs asks for, of its part of a matrix.
    fn update_over(shape: [u64; 2], dtype: DType, world: u64) -> Vec<u64> {
        let tape = Tape::new(Gpu::H200);
        let p = tape.parameter(shape, dtype, "weight");
        let input = tape.empty([1, shape[1]], dtype, "input");
        tape.backward(&tape.mean(&tape.mean(&tape.linear(&input, &p, None), 1), 0));
        let mut optimizer = Optimizer::with_tables(&tape, setup::Optimizer::Muon, &[p]);
        optimizer.world = world;
        optimizer.step(&tape);
        let start = tape.mark();
        optimizer.step(&tape);
        drop((optimizer, input));
        let log = tape.finish();
        let made = log.events[start..].iter().filter(|event| event.is_alloc());
        let bytes = made.map(|event| log.allocations[event.storage() as usize].bytes);
        bytes.filter(|bytes| *bytes >= 1024).collect()
    }

    #[test]
    fn the_gram_matrix_is_that_of_the_shorter_side() {
        let (whole, gram) = (2 * 96 * 64, 2 * 64 * 64);
        let iterations = [gram, gram, whole].repeat(ITERATIONS);
        let expected = [&[whole][..], &iterations].concat();
        assert_eq!(update([96, 64], DType::Bf16), expected);
        assert_eq!(update([64, 96], DType::Bf16), expected);
    }

    /// Recorded with `fully_shard` over two GPUs, [96, 64] and [64, 96].
    #[test]
    fn shards_of_a_tall_matrix_sum_and_those_of_a_wide_one_gather() {
        let (part, gram) = (2 * 48 * 64, 2 * 64 * 64);
        let tall = [gram, gram, gram, gram, part].repeat(ITERATIONS);
        assert_eq!(update_over([48, 64], DType::Bf16, 2), [&[part][..], &tall].concat());
        let (part, whole, rows) = (2 * 32 * 96, 2 * 64 * 96, 2 * 32 * 64);
        let wide = [part, whole, whole, rows, gram, rows, whole, part].repeat(ITERATIONS);
        assert_eq!(update_over([32, 96], DType::Bf16, 2), [&[part][..], &wide].concat());
    }

    #[test]
    fn a_matrix_in_fp32_is_iterated_on_in_bf16() {
        let made = update([64, 96], DType::F32);
        assert_eq!(made[..3], [4 * 96 * 64, 2 * 96 * 64, 2 * 64 * 64]);
    }
}
