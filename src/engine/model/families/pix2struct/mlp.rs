//! The gated MLP of Pix2Struct's tower and decoder (`Pix2StructVisionMlp`, `Pix2StructTextDenseGatedActDense`).

use super::config::BlockSizes;
use crate::dtype::DType;
use crate::nn::{self, Activation, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// Two projections, of which the first is activated and gates the other, and one back.
pub(super) struct GatedMlp {
    module: Module,
    wi_0: Linear,
    wi_1: Linear,
    wo: Linear,
    activation: Activation,
    dropout: f64,
    /// Type of the weights.
    dtype: DType,
}

impl GatedMlp {
    pub fn new(b: &Builder, c: &BlockSizes) -> Self {
        Self {
            module: b.module(),
            wi_0: Linear::new(b, "wi_0", c.hidden, c.intermediate, false),
            wi_1: Linear::new(b, "wi_1", c.hidden, c.intermediate, false),
            wo: Linear::new(b, "wo", c.intermediate, c.hidden, false),
            activation: c.activation,
            dropout: c.dropout,
            dtype: b.dtype(),
        }
    }

    pub fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || {
            let gate = nn::activate(t, self.activation, self.wi_0.call(t, &x));
            let linear = self.wi_1.call(t, &x);
            let mut h = t.mul(&gate, &linear);
            h = t.dropout(&h, self.dropout);
            // `hidden_states.to(self.wo.weight.dtype)`: under autocast the weight may be wider.
            h = t.to_dtype(&h, self.dtype);
            let out = self.wo.call(t, &h);
            drop((gate, linear, x));
            out
        })
    }
}
