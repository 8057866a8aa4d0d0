//! Gates that learn to open, of one element.

use crate::tape::{Tape, Tensor};

/// `gate.tanh() * x`, for a gate of one element.
pub fn gated(t: &Tape, gate: &Tensor, x: &Tensor) -> Tensor {
    let opened = t.tanh(gate);
    t.mul(&opened, x)
}
