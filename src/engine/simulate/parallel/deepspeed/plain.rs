//! DeepSpeed without ZeRO: a copy in fp32 of each parameter (`FP16_UnfusedOptimizer` under bf16).

use std::cell::Cell;
use std::rc::Rc;

use super::super::super::engine::EngineOptimizer;
use super::values;
use crate::dtype::DType;
use crate::optim::Optimizer;
use crate::tape::work::{Beside, Class};
use crate::tape::{Kind, Tape, Tensor, Why};

/// Elements of gradients that are summed at once (`MEMORY_OPT_ALLREDUCE_SIZE`).
const BUCKET: u64 = 500_000_000;

/// The optimizer around the client's.
pub(super) struct Plain {
    /// Parameters of each group, each with its copy in fp32, which the client's optimizer updates.
    groups: Vec<Vec<(Tensor, Tensor)>>,
    optimizer: Optimizer,
    /// True if the client's optimizer updates parameters in fp32 itself.
    is_wide: bool,
    clips: bool,
    /// Number of GPUs.
    world: u64,
    is_boundary: Rc<Cell<bool>>,
}

impl Plain {
    pub fn new(t: &Tape, client: &Optimizer, (clips, world): (bool, u64), is_boundary: Rc<Cell<bool>>) -> Self {
        let is_wide = client.params().iter().all(|param| param.dtype() == DType::F32);
        let copy = |param: &Tensor| if is_wide { param.clone() } else { master(t, param) };
        let of_group = |group: &[Tensor]| group.iter().map(|param| (param.clone(), copy(param))).collect();
        let groups: Vec<Vec<(Tensor, Tensor)>> = client.groups().map(of_group).collect();
        let masters = |at: usize| groups.get(at).into_iter().flatten().map(|(_, master)| master.clone());
        let mut optimizer = client.over([0, 1].map(|at| masters(at).collect()));
        let both: Vec<&(Tensor, Tensor)> = groups.iter().flatten().collect();
        t.no_grad(|| {
            if is_wide {
                return;
            }
            both.iter().for_each(|(param, _)| param.hold_gradient(t));
            both.iter().for_each(|(_, master)| master.hold_gradient(t));
            optimizer.step(t);
            both.iter().for_each(|(param, _)| param.clear_grad());
            both.iter().for_each(|(_, master)| master.clear_grad());
        });
        Self {
            groups,
            optimizer,
            is_wide,
            clips,
            world,
            is_boundary,
        }
    }

    fn params(&self) -> impl Iterator<Item = &Tensor> {
        self.groups.iter().flatten().map(|(param, _)| param)
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
    fn before_forward(&mut self, t: &Tape, _: bool) {
        t.hook("deepspeed forward", 1);
    }

    fn gradient(&mut self, _: &Tape, _: &Tensor) {}

    /// `buffered_allreduce_fallback`: copies of all gradients are summed over the GPUs, those that are missing as zeros.
    fn after_backward(&mut self, t: &Tape) {
        if !self.is_boundary.get() {
            return;
        }
        t.hook("deepspeed backward", 1);
        let missing = self.params().filter(|param| param.grad().is_none());
        missing.for_each(|param| param.hold_gradient(t));
        let Some(dtype) = self.params().next().map(Tensor::dtype) else {
            return;
        };
        let (mut open, mut count) = (0, 0);
        for param in self.params() {
            (open, count) = (open + 1, count + param.numel());
            if count > BUCKET {
                summed(t, (open, self.world), (count, dtype));
                (open, count) = (0, 0);
            }
        }
        summed(t, (open, self.world), (count, dtype));
    }

    fn step(&mut self, t: &Tape) {
        values::begin_step(t, "deepspeed0", self.params());
        let gradients: Vec<Tensor> = self.params().filter_map(Tensor::grad).collect();
        if self.is_wide {
            if self.clips {
                values::clip_wide(t, &gradients);
            }
            drop(gradients);
            self.optimizer.step(t);
            return self.params().for_each(Tensor::clear_grad);
        }
        gradients
            .iter()
            .for_each(|gradient| drop(values::has_inf_or_nan(t, gradient)));
        drop(t.empty([1], DType::U8, "overflow"));
        drop(gradients);
        for group in &self.groups {
            let gradients: Vec<Tensor> = group.iter().filter_map(|(param, _)| param.grad()).collect();
            values::weight_norm(t, &gradients);
            drop(gradients);
            for (_, master) in group {
                master.hold_gradient(t);
            }
        }
        self.optimizer.step(t);
        self.params()
            .for_each(|param| values::narrow(t, param.numel(), param.dtype()));
        let both = || self.groups.iter().flatten();
        both().for_each(|(_, master)| master.clear_grad());
        both().for_each(|(param, _)| param.clear_grad());
    }

    fn weights(&self) -> Vec<(Tensor, bool)> {
        Vec::new()
    }
}

/// Sums gradients over all GPUs in one copy; a single gradient is summed in place.
fn summed(t: &Tape, (gradients, world): (u64, u64), (elements, dtype): (u64, DType)) {
    let bytes = elements * dtype.width();
    let copy = (gradients > 1).then(|| t.empty([elements], dtype, "gradients to be summed"));
    // They are divided, and copied back one by one.
    t.launch(t.kernel("div_", Class::Pointwise, dtype, [bytes, bytes]));
    if world > 1 {
        t.collective_at_once(Beside::AllReduce, bytes);
    }
    if copy.is_some() {
        t.hook("ddp copy", gradients as usize);
        t.copied(dtype, [bytes, bytes]);
    }
}
