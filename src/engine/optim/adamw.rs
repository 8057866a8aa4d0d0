//! `torch.optim.AdamW` in its three forms (`torch/optim/adam.py`).

use super::Optimizer;
use crate::dtype::DType;
use crate::setup;
use crate::tape::{Kind, Tape, Tensor, Why};

impl Optimizer {
    pub(super) fn adamw(&mut self, t: &Tape) {
        self.init_adamw(t);
        match self.kind {
            setup::Optimizer::Adamw => self.adamw_foreach(t),
            setup::Optimizer::AdamwLoop => self.adamw_loop(t),
            _ => {}
        }
    }

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

    /// `_multi_tensor_adam`: the roots of all second moments live together.
    fn adamw_foreach(&self, t: &Tape) {
        let with_grad = self.params.iter().filter(|p| p.grad().is_some());
        let mark = t.work_mark();
        let roots: Vec<Tensor> = with_grad
            .map(|p| t.empty_like(p, p.dtype(), "sqrt of exp_avg_sq"))
            .collect();
        t.ran(mark, []);
        drop(roots);
    }

    /// `_single_tensor_adam`: the variable `denom` lives until the next parameter's replaces it.
    fn adamw_loop(&self, t: &Tape) {
        let mut denom: Option<Tensor> = None;
        for p in self.params.iter().filter(|p| p.grad().is_some()) {
            super::work::turn(t, self.name(), p);
            let mark = t.work_mark();
            let root = t.empty_like(p, p.dtype(), "sqrt of exp_avg_sq");
            let next = t.empty_like(p, p.dtype(), "denominator of the update");
            t.ran(mark, []);
            self.work_in_place(t, p);
            drop(root);
            denom = Some(next);
        }
        drop(denom);
    }
}
