//! Activations by transformers' names (`transformers/activations.py`).

use crate::model::config::Activation;
use crate::tape::{Tape, Tensor};

/// Runs an activation as transformers does: some are one kernel, some a chain of operations.
pub fn activate(t: &Tape, kind: Activation, x: Tensor) -> Tensor {
    match kind {
        Activation::GeluNew => gelu_new(t, &x),
        Activation::QuickGelu => quick_gelu(t, &x),
        Activation::Gelu | Activation::GeluTanh => t.activation("GeluBackward0", &x, "gelu"),
        Activation::Silu => t.activation("SiluBackward0", &x, "silu"),
        Activation::Relu => t.unary_of_result("ReluBackward0", &x, "relu"),
    }
}

/// `0.5 * x * (1 + tanh(c * (x + 0.044715 * x³)))`, eight operations.
fn gelu_new(t: &Tape, x: &Tensor) -> Tensor {
    let half = t.scale(x);
    let inner = {
        let cubic = {
            let cube = t.pow(x);
            t.scale(&cube)
        };
        let sum = t.add(x, &cubic);
        drop(cubic);
        t.scale(&sum)
    };
    let tanh = t.tanh(&inner);
    drop(inner);
    let gate = t.shift(&tanh);
    drop(tanh);
    t.mul(&half, &gate)
}

/// `x * sigmoid(1.702 * x)`.
fn quick_gelu(t: &Tape, x: &Tensor) -> Tensor {
    let gate = {
        let scaled = t.scale(x);
        t.sigmoid(&scaled)
    };
    t.mul(x, &gate)
}
