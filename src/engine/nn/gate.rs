//! Learned gates, which are activated by `tanh`.

use crate::tape::{Tape, Tensor};

/// `gate.tanh() * x`, for a gate that broadcasts to `x`.
pub fn gated(t: &Tape, gate: &Tensor, x: &Tensor) -> Tensor {
    let activated = t.tanh(gate);
    t.mul(&activated, x)
}
