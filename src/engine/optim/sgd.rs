//! `torch.optim.SGD` (`torch/optim/sgd.py`), foreach form.

use super::Optimizer;
use crate::tape::Tape;

impl Optimizer {
    /// Allocates the momentum buffers, copies of the gradients, in the first step; from then on they are updated in
    /// place.
    pub(super) fn momentum(&mut self, t: &Tape) {
        for (p, states) in self.params.iter().zip(&mut self.states) {
            if states.0.is_empty() && p.grad().is_some() {
                states.0.push(Self::state(t, p, "momentum_buffer"));
            }
        }
    }
}
