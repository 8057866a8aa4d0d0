//! In-place kernels and host ops of an optimizer's step, which allocate nothing.

use super::Optimizer;
use crate::dtype::DType;
use crate::setup;
use crate::tape::work::{Class, HostOp};
use crate::tape::{Tape, Tensor};

/// A kernel over whole lists: its name, number of lists it reads, and number of lists it writes.
pub(crate) type Pass = (&'static str, u64, u64);

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

/// `_multi_tensor_sgd` (`torch/optim/sgd.py`) without and with momentum.
pub(super) const SGD: [Pass; 1] = [("_foreach_add_", 2, 1)];
pub(super) const SGD_MOMENTUM: [Pass; 3] = [
    ("_foreach_mul_", 1, 1),
    ("_foreach_add_", 2, 1),
    ("_foreach_add_", 2, 1),
];

/// `Adafactor.step` of transformers: in-place kernels for a matrix, in fp32.
const ADAFACTOR: [Pass; 4] = [("div_", 1, 1), ("mul_", 1, 1), ("mul_", 2, 1), ("add_", 2, 1)];

/// `_single_tensor_adafactor`: in-place kernels for a matrix, in the parameter's type.
const ADAFACTOR_TORCH: [Pass; 5] = [
    ("mul_", 1, 1),
    ("div_", 1, 1),
    ("rsqrt_", 1, 1),
    ("mul_", 2, 1),
    ("add_", 2, 1),
];

impl Optimizer {
    /// Name of the optimizer in host ops.
    pub(super) fn name(&self) -> &'static str {
        use setup::Optimizer as O;
        match self.kind {
            O::Adamw => "adamw",
            O::AdamwFused => "adamw_fused",
            O::AdamwLoop => "adamw_loop",
            O::Sgd => "sgd",
            O::Sgdm => "sgdm",
            O::Adafactor => "adafactor",
            O::AdafactorTorch => "adafactor_torch",
            O::Adamw8bit | O::PagedAdamw8bit | O::PagedAdamw => "adamw_8bit",
        }
    }

    /// Records the host's loop over all parameters that drops their gradients.
    pub fn zero_grad_work(&self, t: &Tape) {
        if t.works() {
            t.host_op(HostOp::Step("zero_grad"));
            self.params.iter().for_each(|p| turn(t, "zero_grad", p));
        }
    }

    /// Records the step's kernels over whole lists, and the host's work per parameter.
    pub(super) fn work(&self, t: &Tape) {
        use setup::Optimizer as O;
        if !t.works() {
            return;
        }
        let trained: Vec<&Tensor> = self.params.iter().filter(|p| p.grad().is_some()).collect();
        t.host_op(HostOp::Step(self.name()));
        let by_parameter = matches!(self.kind, O::AdamwLoop | O::Adafactor | O::AdafactorTorch);
        if !by_parameter {
            trained.iter().for_each(|p| turn(t, self.name(), p));
        }
        match self.kind {
            O::Adamw => lists(t, &trained, &ADAMW),
            O::Sgd => lists(t, &trained, &SGD),
            O::Sgdm => lists(t, &trained, &SGD_MOMENTUM),
            O::AdamwFused => by_type(t, &trained, Class::FusedAdamw, &[("_fused_adamw_", 4, 3)]),
            O::Adamw8bit | O::PagedAdamw8bit | O::PagedAdamw => lists(t, &trained, &[("optimizer_update_8bit", 3, 2)]),
            _ => {}
        }
    }

    /// Records the in-place kernels of one parameter, after those that allocate.
    pub(super) fn work_in_place(&self, t: &Tape, p: &Tensor) {
        use setup::Optimizer as O;
        let (passes, dtype): (&[Pass], _) = match self.kind {
            O::AdamwLoop => (&ADAMW_LOOP, p.dtype()),
            O::Adafactor => (&ADAFACTOR, DType::F32),
            _ => (&ADAFACTOR_TORCH, p.dtype()),
        };
        in_place(t, p, passes, dtype);
        if self.kind == O::Adafactor && p.dtype() != DType::F32 {
            in_place(t, p, &[("copy_", 2, 1)], p.dtype());
        }
    }
}

/// Records the host's work on one parameter.
pub(super) fn turn(t: &Tape, optimizer: &'static str, p: &Tensor) {
    t.host_op(HostOp::Parameter(optimizer, p.dim() >= 2));
}

fn in_place(t: &Tape, p: &Tensor, passes: &[Pass], dtype: DType) {
    let bytes = p.numel() * dtype.width();
    for &(name, reads, writes) in passes {
        t.launch(t.kernel(name, Class::Pointwise, dtype, [reads * bytes, writes * bytes]));
    }
}

/// Records kernels over the lists of parameters of each type.
pub(super) fn lists(t: &Tape, tensors: &[&Tensor], passes: &[Pass]) {
    by_type(t, tensors, Class::Foreach, passes);
}

fn by_type(t: &Tape, tensors: &[&Tensor], class: Class, passes: &[Pass]) {
    for dtype in [DType::F32, DType::Bf16, DType::F16] {
        let of_type = || tensors.iter().filter(|p| p.dtype() == dtype);
        let (count, elements) = (of_type().count() as u64, of_type().map(|p| p.numel()).sum::<u64>());
        if count == 0 {
            continue;
        }
        let bytes = elements * dtype.width();
        for &(name, reads, writes) in passes {
            let mut launch = t.kernel(name, class, dtype, [reads * bytes, writes * bytes]);
            launch.extents = [count, elements, 0, 0];
            t.launch(launch);
        }
    }
}
