//! Gated MLP of vision towers (`Qwen2_5_VLMLP`, `GlmOcrVisionMlp`).

use super::block::Map;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// A projection, another that gates it, and one back.
pub struct GatedMlp {
    module: Module,
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl GatedMlp {
    /// Makes an MLP of these widths outside and inside.
    pub fn new(b: &Builder, [width, inner]: [u64; 2], bias: bool, activation: Activation) -> Self {
        Self {
            module: b.module(),
            gate_proj: Linear::new(b, "gate_proj", width, inner, bias),
            up_proj: Linear::new(b, "up_proj", width, inner, bias),
            down_proj: Linear::new(b, "down_proj", inner, width, bias),
            activation,
        }
    }

    /// [.., width] → [.., width], for a caller that has entered the module, of which it is a part.
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let product = {
            let gate = self.gate_proj.call(t, x);
            let gate = nn::activate(t, self.activation, gate);
            let up = self.up_proj.call(t, x);
            t.mul(&gate, &up)
        };
        self.down_proj.call(t, &product)
    }
}

impl Map for GatedMlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, || self.forward(t, x))
    }
}
