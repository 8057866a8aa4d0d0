//! Gates that learn to open (`tanh`).

use crate::tape::{Tape, Tensor};

/// `gate.tanh() * x`, for a gate that broadcasts to `x`.
pub fn gated(t: &Tape, gate: &Tensor, x: &Tensor) -> Tensor {
    let opened = t.tanh(gate);
    t.mul(&opened, x)
}
