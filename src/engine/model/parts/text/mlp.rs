//! An MLP without a gate.

use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// Names of an MLP's projections, and whether they have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MlpForm {
    /// Names of the projections in and out.
    pub names: [&'static str; 2],
    /// True if both have biases.
    pub bias: bool,
}

/// Two linear layers around an activation.
pub(crate) struct PlainMlp {
    module: Module,
    up: Linear,
    down: Linear,
    activation: Activation,
}

impl PlainMlp {
    /// Makes an MLP of these widths.
    pub fn new(b: &Builder, form: MlpForm, [hidden, intermediate]: [u64; 2], activation: Activation) -> Self {
        let MlpForm {
            names: [up, down],
            bias,
        } = form;
        Self {
            module: b.module(),
            up: Linear::new(b, up, hidden, intermediate, bias),
            down: Linear::new(b, down, intermediate, hidden, bias),
            activation,
        }
    }

    /// [.., hidden] → [.., hidden].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.call_with_dropout(t, x, 0.0)
    }

    /// [.., hidden] → [.., hidden], of which elements are dropped with a probability.
    pub fn call_with_dropout(&self, t: &Tape, x: &Tensor, dropout: f64) -> Tensor {
        self.module.call(t, || {
            let mut h = self.up.call(t, x);
            h = nn::activate(t, self.activation, h);
            t.dropout(&self.down.call(t, &h), dropout)
        })
    }
}
