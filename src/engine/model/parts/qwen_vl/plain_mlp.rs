//! MLP of two linear layers, of the towers of Kimi-K2.5 and Muse Glimmer.

use super::block::Map;
use crate::model::config::Activation;
use crate::nn::{self, Builder, Linear};
use crate::tape::{Module, Tape, Tensor};

/// `Kimi_K25VisionMLP`, `MuseGlimmerVisionMLP`.
pub struct PlainMlp {
    module: Module,
    fc1: Linear,
    fc2: Linear,
    activation: Activation,
}

impl PlainMlp {
    /// Makes the module under construction, with biases.
    pub fn new(b: &Builder, [width, intermediate]: [u64; 2], activation: Activation) -> Self {
        Self {
            module: b.module(),
            fc1: Linear::new(b, "fc1", width, intermediate, true),
            fc2: Linear::new(b, "fc2", intermediate, width, true),
            activation,
        }
    }
}

impl Map for PlainMlp {
    fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let h = nn::activate(t, self.activation, self.fc1.call(t, x));
            self.fc2.call(t, &h)
        })
    }
}
