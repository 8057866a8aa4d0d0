//! `torch.optim.Muon` (`torch/optim/_muon.py`, 2.9 to 2.11) for the matrices of a model's blocks, and AdamW for everything
//! else: embeddings, the head, and what is no matrix.

use super::work::{Form, Pass, in_place, turn};
use super::{Optimizer, States};
use crate::dtype::DType;
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
            turn(t, MUON.name, p);
            // `grad.lerp(buf, momentum)`
            let momentum = t.empty_like(&grad, grad.dtype(), "Nesterov momentum");
            drop(update.replace(momentum.clone()));
            let made = orthogonal(t, &momentum);
            drop(momentum);
            drop(update.replace(made));
            in_place(t, p, &IN_PLACE, p.dtype());
        }
    }
}

/// `_zeropower_via_newtonschulz`, in bf16: a matrix with more rows than columns is turned, so that its Gram matrix is the
/// smaller one.
fn orthogonal(t: &Tape, update: &Tensor) -> Tensor {
    let is_tall = update.size(0) > update.size(1);
    let turned = |x: &Tensor| if is_tall { t.transpose(x, 0, 1) } else { x.clone() };
    let mut x = turned(&t.to_dtype(update, DType::Bf16));
    let norm = t.reduce_all(&x, "norm");
    let clamped = t.clamp_min(&norm);
    drop(norm);
    drop(clamped);
    // What a turn of the loop makes lives until the next turn's replaces it.
    let (mut last_gram, mut last_update) = (None, None);
    for _ in 0..ITERATIONS {
        let gram = t.mm(&x, &t.transpose(&x, 0, 1));
        drop(last_gram.replace(gram.clone()));
        let gram_update = t.addmm_of(&gram, &gram, &gram);
        drop(last_update.replace(gram_update.clone()));
        x = t.addmm_of(&x, &gram_update, &x);
    }
    turned(&x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;
    use crate::tape::Gpu;

    /// Bytes that the second update of one matrix asks for, without workspaces and scalars.
    fn update(shape: [u64; 2], dtype: DType) -> Vec<u64> {
        let tape = Tape::new(Gpu::H200);
        let p = tape.parameter(shape, dtype, "weight");
        let input = tape.empty([1, shape[1]], dtype, "input");
        tape.backward(&tape.mean(&tape.mean(&tape.linear(&input, &p, None), 1), 0));
        let mut optimizer = Optimizer::with_tables(&tape, setup::Optimizer::Muon, &[p]);
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

    #[test]
    fn a_matrix_in_fp32_is_iterated_on_in_bf16() {
        let made = update([64, 96], DType::F32);
        assert_eq!(made[..3], [4 * 96 * 64, 2 * 96 * 64, 2 * 64 * 64]);
    }
}
