//! Gated MLP of vision towers (`Qwen2_5_VLMLP`, `GlmOcrVisionMlp`).

use super::block::Map;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Tape, Tensor};

/// A projection, another that gates it, and one back.
pub struct GatedMlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl GatedMlp {
    /// Makes an MLP of these widths outside and inside.
    pub fn new(b: &Builder, [width, inner]: [u64; 2], bias: bool, activation: Activation) -> Self {
        Self {
            gate_proj: Linear::new(b, "gate_proj", width, inner, bias),
            up_proj: Linear::new(b, "up_proj", width, inner, bias),
            down_proj: Linear::new(b, "down_proj", inner, width, bias),
            activation,
        }
    }
}

impl Map for GatedMlp {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let product = {
            let gate = t.scope("gate_proj", || self.gate_proj.forward(t, x));
            let gate = nn::activate(t, self.activation, gate);
            let up = t.scope("up_proj", || self.up_proj.forward(t, x));
            t.mul(&gate, &up)
        };
        t.scope("down_proj", || self.down_proj.forward(t, &product))
    }
}
