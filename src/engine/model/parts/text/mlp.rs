//! An MLP without a gate.

use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Tape, Tensor};

/// Names of an MLP's projections, and whether they have biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MlpForm {
    /// Names of the projections in and out.
    pub names: [&'static str; 2],
    /// True if both have biases.
    pub bias: bool,
}

/// Two linear maps around an activation.
pub(crate) struct PlainMlp {
    names: [&'static str; 2],
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
            names: form.names,
            up: Linear::new(b, up, hidden, intermediate, bias),
            down: Linear::new(b, down, intermediate, hidden, bias),
            activation,
        }
    }

    /// [.., hidden] → [.., hidden].
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let [up, down] = self.names;
        let mut h = t.scope(up, || self.up.forward(t, x));
        h = nn::activate(t, self.activation, h);
        t.scope(down, || self.down.forward(t, &h))
    }
}
