//! `torch.optim.Adagrad` in its two forms (`torch/optim/adagrad.py`).

use super::Optimizer;
use super::groups::by_dtype;
use super::work::{Form, Pass, in_place, note_parameter};
use crate::dtype::DType;
use crate::tape::work::Class;
use crate::tape::{Kind, Tape, Tensor, Why};

/// `_multi_tensor_adagrad`, without weight decay.
const PASSES: [Pass; 5] = [
    ("_foreach_addcmul_", 2, 1),
    ("_foreach_sqrt", 1, 1),
    ("_foreach_add_", 1, 1),
    ("_foreach_mul", 1, 1),
    ("_foreach_addcdiv_", 3, 1),
];

/// `_single_tensor_adagrad`, parameter by parameter.
const LOOP_PASSES: [Pass; 4] = [("addcmul_", 2, 1), ("sqrt", 1, 1), ("add_", 1, 1), ("addcdiv_", 3, 1)];

/// `foreach=True`: kernels over whole lists.
pub(super) static FOREACH: Form = Form {
    name: "adagrad",
    lists: Some((Class::Foreach, &PASSES)),
    update: |optimizer, t| optimizer.adagrad_foreach(t),
};

/// `foreach=False`: one parameter after the other.
pub(super) static FOR_LOOP: Form = Form {
    name: "adagrad_loop",
    lists: None,
    update: |optimizer, t| optimizer.adagrad_loop(t),
};

impl Optimizer {
    /// Makes the sums of squares, as `Adagrad.__init__` does, with gradients or without.
    pub(super) fn init_adagrad(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() {
                states.0.push(Self::state(t, p, "sum"));
            }
        }
    }

    /// Step counts, which `__init__` leaves on the host.
    pub(super) fn place_adagrad(&mut self, t: &Tape) {
        for states in &mut self.states {
            let step = t.as_kind(Kind::OptimizerState, || t.empty([], DType::F32, "step"));
            step.storage().classify(Kind::OptimizerState, Why::StepCount);
            states.0.push(step);
        }
    }

    /// `_multi_tensor_adagrad`: roots of all sums of one type, and the gradients times the learning rate. Those of one type live
    /// until the same of the next exist.
    fn adagrad_foreach(&self, t: &Tape) {
        let with_grad = self.params.iter().filter(|p| p.grad().is_some());
        let with_grad: Vec<Tensor> = with_grad.cloned().collect();
        let mark = t.work_mark();
        let (mut std, mut numerator) = (Vec::new(), Vec::new());
        for group in by_dtype(&with_grad) {
            let like = |name| -> Vec<Tensor> { group.iter().map(|p| t.empty_like(p, p.dtype(), name)).collect() };
            std = like("sqrt of sum");
            numerator = like("gradient times the learning rate");
        }
        t.ran(mark, []);
        drop((std, numerator));
    }

    /// `_single_tensor_adagrad`: the variable `std` lives until the next parameter's replaces it.
    fn adagrad_loop(&self, t: &Tape) {
        let mut std: Option<Tensor> = None;
        for p in self.params.iter().filter(|p| p.grad().is_some()) {
            note_parameter(t, FOR_LOOP.name, p);
            let mark = t.work_mark();
            let next = t.empty_like(p, p.dtype(), "sqrt of sum");
            t.ran(mark, []);
            in_place(t, p, &LOOP_PASSES, p.dtype());
            std = Some(next);
        }
        drop(std);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup;
    use crate::tape::Gpu;

    /// Bytes that an optimizer of one matrix asks for as it is made and prepared, and then in each of two steps.
    fn asked(kind: setup::Optimizer, is_trainers: bool) -> [Vec<u64>; 3] {
        let tape = Tape::new(Gpu::H200);
        let p = tape.parameter([64, 256], DType::Bf16, "weight");
        let input = tape.empty([1, 256], DType::Bf16, "input");
        tape.backward(&tape.mean(&tape.mean(&tape.linear(&input, &p, None), 1), 0));
        let begin = tape.mark();
        let mut optimizer = Optimizer {
            is_trainers,
            ..Optimizer::new(kind, &[p])
        };
        optimizer.make_states(&tape);
        optimizer.place_states(&tape);
        let marks = [(); 3].map(|()| {
            let mark = tape.mark();
            optimizer.step(&tape);
            mark
        });
        drop((optimizer, input));
        let log = tape.finish();
        let [first, second, end] = marks;
        [begin..first, first..second, second..end].map(|range| {
            let events = log.events[range].iter().filter(|event| event.is_alloc());
            events.map(|e| log.allocations[e.storage() as usize].bytes).collect()
        })
    }

    /// Recorded without a GPU, in a loop and under transformers' Trainer.
    #[test]
    fn sums_are_there_before_the_first_step() {
        use setup::Optimizer as O;
        let bytes = 2 * 64 * 256;
        let lists = vec![bytes; 2];
        assert_eq!(asked(O::Adagrad, false), [vec![bytes], lists.clone(), lists.clone()]);
        assert_eq!(asked(O::Adagrad, true), [vec![bytes, 4], lists.clone(), lists]);
        assert_eq!(asked(O::AdagradLoop, false), [(); 3].map(|()| vec![bytes]));
    }
}
