//! In-place kernels and host ops of an optimizer's step, which allocate nothing.

use super::Optimizer;
use crate::dtype::DType;
use crate::tape::work::{Class, HostOp};
use crate::tape::{Tape, Tensor};

/// A kernel over whole lists: its name, number of lists it reads, and number of lists it writes.
pub(crate) type Pass = (&'static str, u64, u64);

/// One optimizer's step. The files of this folder declare those that they hold.
pub(super) struct Form {
    /// Name in host ops.
    pub name: &'static str,
    /// Kernels over whole lists of parameters; `None` if the step goes from one parameter to the next.
    pub lists: Option<(Class, &'static [Pass])>,
    /// Allocates what the step takes.
    pub update: fn(&mut Optimizer, &Tape),
}

impl Optimizer {
    /// Records the host's loop over all parameters that drops their gradients.
    pub fn zero_grad_work(&self, t: &Tape) {
        if t.works() {
            t.host_op(HostOp::Step("zero_grad"));
            self.params.iter().for_each(|p| note_parameter(t, "zero_grad", p));
        }
    }

    /// Records the step's kernels over whole lists, and the host's work per parameter.
    pub(super) fn work(&self, t: &Tape) {
        if !t.works() {
            return;
        }
        let form = self.form();
        t.host_op(HostOp::Step(form.name));
        if let Some((class, passes)) = form.lists {
            let trained: Vec<&Tensor> = self.params.iter().filter(|p| p.grad().is_some()).collect();
            trained.iter().for_each(|p| note_parameter(t, form.name, p));
            by_type(t, &trained, class, passes);
        }
    }
}

/// Records the Python that the host runs for one parameter in its loop: it decides the time of a step of many small
/// tensors.
pub(super) fn note_parameter(t: &Tape, optimizer: &'static str, p: &Tensor) {
    t.host_op(HostOp::Parameter(optimizer, p.dim() >= 2));
}

/// Records the in-place kernels of one parameter, after those that allocate.
pub(super) fn in_place(t: &Tape, p: &Tensor, passes: &[Pass], dtype: DType) {
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
