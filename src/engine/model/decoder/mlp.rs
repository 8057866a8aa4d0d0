//! Gated MLP of decoders like Llama's.

use super::config::DecoderConfig;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Tape, Tensor};

/// `LlamaMLP` and its variants: a pair of projections, of which one gates the other, and one back.
pub struct Mlp {
    /// Gate; `None` for an MLP without one (`ArceeMLP`).
    gate_proj: Option<Linear>,
    up_proj: Linear,
    down_proj: Linear,
    activation: Activation,
}

impl Mlp {
    pub fn new(b: &Builder, c: &DecoderConfig) -> Self {
        match c.family.block().gated {
            true => Self::of(b, [c.hidden, c.intermediate], c.mlp_bias, c.activation),
            false => Self {
                gate_proj: None,
                up_proj: Linear::columns(b, "up_proj", c.hidden, c.intermediate, c.mlp_bias),
                down_proj: Linear::rows(b, "down_proj", c.intermediate, c.hidden, c.mlp_bias),
                activation: c.activation,
            },
        }
    }

    /// Makes a gated MLP of these widths.
    pub fn of(b: &Builder, [hidden, intermediate]: [u64; 2], bias: bool, activation: Activation) -> Self {
        Self {
            gate_proj: Some(Linear::columns(b, "gate_proj", hidden, intermediate, bias)),
            up_proj: Linear::columns(b, "up_proj", hidden, intermediate, bias),
            down_proj: Linear::rows(b, "down_proj", intermediate, hidden, bias),
            activation,
        }
    }

    pub fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let Some(gate_proj) = &self.gate_proj else {
            let up = t.scope("up_proj", || self.up_proj.forward(t, &x));
            let opened = nn::activate(t, self.activation, up);
            return t.scope("down_proj", || self.down_proj.forward(t, &opened));
        };
        let product = {
            let gate = nn::activate(t, self.activation, t.scope("gate_proj", || gate_proj.forward(t, &x)));
            let up = t.scope("up_proj", || self.up_proj.forward(t, &x));
            t.mul(&gate, &up)
        };
        t.scope("down_proj", || self.down_proj.forward(t, &product))
    }
}
