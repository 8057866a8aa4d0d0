//! DeepSpeed without ZeRO: a copy in fp32 of each parameter (`FP16_UnfusedOptimizer` under bf16).

use std::cell::Cell;
use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::values;
use crate::Setup;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::tape::{Kind, Tape, Tensor, Why};

/// Elements of gradients that are summed at once (`MEMORY_OPT_ALLREDUCE_SIZE`).
const BUCKET: u64 = 500_000_000;

/// The optimizer around the client's.
pub(super) struct Plain {
    params: Vec<Tensor>,
    /// The parameters in fp32, which the client's optimizer updates.
    masters: Vec<Tensor>,
    optimizer: Optimizer,
    is_boundary: Rc<Cell<bool>>,
}

impl Plain {
    pub fn new(t: &Tape, params: &[Tensor], setup: &Setup, is_boundary: Rc<Cell<bool>>) -> Self {
        let params: Vec<Tensor> = params.iter().filter(|param| param.requires_grad()).cloned().collect();
        let masters: Vec<Tensor> = params.iter().map(|param| master(t, param)).collect();
        let mut optimizer = Optimizer::new(setup.optim, &masters);
        t.no_grad(|| {
            params.iter().chain(&masters).for_each(|param| param.hold_gradient(t));
            optimizer.step(t);
            params.iter().chain(&masters).for_each(Tensor::clear_grad);
        });
        Self {
            params,
            masters,
            optimizer,
            is_boundary,
        }
    }
}

/// `param.clone().float()`, which requires a gradient.
fn master(t: &Tape, param: &Tensor) -> Tensor {
    let copy = t.empty_like(param, param.dtype(), "copy of a parameter");
    let master = t.in_scope(t.scope_of(param), || {
        t.as_kind(Kind::Weight, || t.empty_like(param, DType::F32, "parameter in fp32"))
    });
    drop(copy);
    master.storage().classify(Kind::Weight, Why::Parameter);
    t.require_grad(&master)
}

impl EngineOptimizer for Plain {
    fn gradient(&mut self, _: &Tape, _: &Tensor) {}

    /// `buffered_allreduce_fallback`: copies of all gradients are summed over the GPUs, those that are missing as zeros.
    fn after_backward(&mut self, t: &Tape) {
        if !self.is_boundary.get() {
            return;
        }
        let missing = self.params.iter().filter(|param| param.grad().is_none());
        missing.for_each(|param| param.hold_gradient(t));
        let (mut open, mut count) = (0, 0);
        for param in &self.params {
            (open, count) = (open + 1, count + param.numel());
            if count > BUCKET {
                summed(t, open, count);
                (open, count) = (0, 0);
            }
        }
        summed(t, open, count);
    }

    fn step(&mut self, t: &Tape) {
        let gradients: Vec<Tensor> = self.params.iter().filter_map(Tensor::grad).collect();
        gradients
            .iter()
            .for_each(|gradient| drop(values::has_inf_or_nan(t, gradient)));
        drop(t.empty([1], DType::U8, "overflow"));
        values::weight_norm(t, &gradients);
        drop(gradients);
        for master in &self.masters {
            master.hold_gradient(t);
        }
        self.optimizer.step(t);
        self.masters.iter().for_each(Tensor::clear_grad);
        self.params.iter().for_each(Tensor::clear_grad);
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        Vec::new()
    }
}

/// Sums gradients over all GPUs in one copy; a single gradient is summed in place.
fn summed(t: &Tape, gradients: u64, elements: u64) {
    if gradients > 1 {
        drop(t.empty([elements], DType::Bf16, "gradients to be summed"));
    }
}
