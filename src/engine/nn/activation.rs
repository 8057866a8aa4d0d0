//! Activations by transformers' names (`transformers/activations.py`).

use crate::tape::{Tape, Tensor};

/// A pointwise activation function; several of transformers' names mean the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Exact GELU, one kernel (`gelu`).
    Gelu,
    /// GELU by tanh, one kernel (`gelu_pytorch_tanh`).
    GeluTanh,
    /// GELU by tanh, written out in eight elementwise operations (`gelu_new`, `gelu_fast`'s sibling).
    GeluNew,
    /// x · sigmoid(1.702 x), written out (`quick_gelu`).
    QuickGelu,
    /// x · sigmoid(x), one kernel (`silu`, `swish`).
    Silu,
    /// max(x, 0) (`relu`).
    Relu,
    /// max(x, 0)², two operations (`relu2`).
    Relu2,
    /// xIELU, which has parameters: a module of its own ([`super::Xielu`]), known by name to families that have it.
    Xielu,
}

impl Activation {
    /// transformers' names of the activations that are known.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("gelu", Self::Gelu),
        ("gelu_pytorch_tanh", Self::GeluTanh),
        ("gelu_new", Self::GeluNew),
        ("quick_gelu", Self::QuickGelu),
        ("silu", Self::Silu),
        ("swish", Self::Silu),
        ("relu", Self::Relu),
        ("relu2", Self::Relu2),
    ];

    /// transformers' name of the activation (`ACT2FN`).
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, a)| *a == self)
            .map_or("", |(name, _)| name)
    }

    /// Activation with one of transformers' names.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, a)| *a)
    }
}

/// Runs an activation as transformers does: some are one kernel, some a chain of operations.
pub fn activate(t: &Tape, kind: Activation, x: Tensor) -> Tensor {
    match kind {
        Activation::GeluNew => gelu_new(t, &x),
        Activation::QuickGelu => quick_gelu(t, &x),
        Activation::Gelu | Activation::GeluTanh => t.activation("GeluBackward0", &x, "gelu"),
        Activation::Silu => t.activation("SiluBackward0", &x, "silu"),
        Activation::Relu => t.unary_of_result("ReluBackward0", &x, "relu"),
        Activation::Relu2 => {
            let positive = t.unary_of_result("ReluBackward0", &x, "relu");
            t.pow(&positive)
        }
        Activation::Xielu => unreachable!("xIELU is a module"),
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
