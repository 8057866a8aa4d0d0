//! Gated MLP of decoders like Llama's.

use super::config::DecoderConfig;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Tape, Tensor};

/// `LlamaMLP` and its variants: a gated pair of projections and one back.
pub struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl Mlp {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        Self::of(b, [c.hidden, c.intermediate], c.mlp_bias, c.activation)
    }

    /// Makes a gated MLP of these widths.
    pub fn of(b: &Builder, [hidden, intermediate]: [u64; 2], bias: bool, activation: Activation) -> Self {
        Self {
            gate_proj: Linear::columns(b, "gate_proj", hidden, intermediate, bias),
            up_proj: Linear::columns(b, "up_proj", hidden, intermediate, bias),
            down_proj: Linear::rows(b, "down_proj", intermediate, hidden, bias),
            activation,
        }
    }

    pub fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let product = {
            let gate = nn::activate(
                t,
                self.activation,
                t.scope("gate_proj", || self.gate_proj.forward(t, &x)),
            );
            let up = t.scope("up_proj", || self.up_proj.forward(t, &x));
            t.mul(&gate, &up)
        };
        t.scope("down_proj", || self.down_proj.forward(t, &product))
    }
}
