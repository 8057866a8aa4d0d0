//! `torch.optim.SGD` (`torch/optim/sgd.py`), foreach form.

use super::Optimizer;
use super::work::Form;
use crate::tape::Tape;
use crate::tape::work::Class;

/// Without momentum: nothing beside the gradients.
pub(super) static PLAIN: Form = Form {
    name: "sgd",
    lists: Some((Class::Foreach, &[("_foreach_add_", 2, 1)])),
    update: |_, _| {},
};

/// With momentum.
pub(super) static MOMENTUM: Form = Form {
    name: "sgdm",
    lists: Some((
        Class::Foreach,
        &[
            ("_foreach_mul_", 1, 1),
            ("_foreach_add_", 2, 1),
            ("_foreach_add_", 2, 1),
        ],
    )),
    update: Optimizer::momentum,
};

impl Optimizer {
    /// Allocates the momentum buffers, copies of the gradients, in the first step; from then on they are updated in
    /// place.
    fn momentum(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() && p.grad().is_some() {
                states.0.push(Self::state(t, p, "momentum_buffer"));
            }
        }
    }
}
