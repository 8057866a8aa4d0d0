//! `torch.optim.AdamW` in its three forms (`torch/optim/adam.py`).

use super::Optimizer;
use super::groups::by_dtype;
use super::work::{Form, Pass, in_place, note_parameter};
use crate::dtype::DType;
use crate::setup;
use crate::tape::work::Class;
use crate::tape::{Kind, Tape, Tensor, Why};

/// `_multi_tensor_adam` (`torch/optim/adam.py`), with weight decay and without amsgrad.
pub(crate) const ADAMW: [Pass; 8] = [
    ("_foreach_mul_", 1, 1),
    ("_foreach_lerp_", 2, 1),
    ("_foreach_mul_", 1, 1),
    ("_foreach_addcmul_", 2, 1),
    ("_foreach_sqrt", 1, 1),
    ("_foreach_div_", 1, 1),
    ("_foreach_add_", 1, 1),
    ("_foreach_addcdiv_", 3, 1),
];

/// `_single_tensor_adam`, parameter by parameter.
pub(crate) const ADAMW_LOOP: [Pass; 8] = [
    ("mul_", 1, 1),
    ("lerp_", 2, 1),
    ("mul_", 1, 1),
    ("addcmul_", 2, 1),
    ("sqrt", 1, 1),
    ("div", 1, 1),
    ("add_", 1, 1),
    ("addcdiv_", 3, 1),
];

/// `foreach=True`: kernels over whole lists.
pub(super) static FOREACH: Form = Form {
    name: "adamw",
    lists: Some((Class::Foreach, &ADAMW)),
    update: |optimizer, t| {
        optimizer.init_adamw(t);
        optimizer.adamw_foreach(t);
    },
};

/// `fused=True`: one kernel, which takes nothing beside the states.
pub(super) static FUSED: Form = Form {
    name: "adamw_fused",
    lists: Some((Class::FusedAdamw, &[("_fused_adamw_", 4, 3)])),
    update: Optimizer::init_adamw,
};

/// `foreach=False`: one parameter after the other.
pub(super) static FOR_LOOP: Form = Form {
    name: "adamw_loop",
    lists: None,
    update: |optimizer, t| {
        optimizer.init_adamw(t);
        optimizer.adamw_loop(t);
    },
};

impl Optimizer {
    /// First and second moments; the fused form also keeps its step count on the GPU.
    fn init_adamw(&mut self, t: &Tape) {
        let fused = self.kind == setup::Optimizer::AdamwFused;
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if !states.0.is_empty() || p.grad().is_none() {
                continue;
            }
            if fused {
                let step = t.as_kind(Kind::OptimizerState, || t.empty([], DType::F32, "step"));
                step.storage().classify(Kind::OptimizerState, Why::StepCount);
                states.0.push(step);
            }
            states.0.push(Self::state(t, p, "exp_avg"));
            states.0.push(Self::state(t, p, "exp_avg_sq"));
        }
    }

    /// `_multi_tensor_adam`: the roots of all second moments of one type live together, until those of the next exist.
    fn adamw_foreach(&self, t: &Tape) {
        let with_grad = self.params.iter().filter(|p| p.grad().is_some());
        let with_grad: Vec<Tensor> = with_grad.cloned().collect();
        let mark = t.work_mark();
        let mut roots: Vec<Tensor> = Vec::new();
        for group in by_dtype(&with_grad) {
            roots = group
                .iter()
                .map(|p| t.empty_like(p, p.dtype(), "sqrt of exp_avg_sq"))
                .collect();
        }
        t.ran(mark, []);
        drop(roots);
    }

    /// `_single_tensor_adam`: the variable `denom` lives until the next parameter's replaces it.
    fn adamw_loop(&self, t: &Tape) {
        let mut denom: Option<Tensor> = None;
        for p in self.params.iter().filter(|p| p.grad().is_some()) {
            note_parameter(t, FOR_LOOP.name, p);
            let mark = t.work_mark();
            let root = t.empty_like(p, p.dtype(), "sqrt of exp_avg_sq");
            let next = t.empty_like(p, p.dtype(), "denominator of the update");
            t.ran(mark, []);
            in_place(t, p, &ADAMW_LOOP, p.dtype());
            drop(root);
            denom = Some(next);
        }
        drop(denom);
    }
}
