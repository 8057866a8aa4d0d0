//! Mamba's convolution along positions.

use super::config::ConvSizes;
use crate::nn::{Activation, Builder, activate};
use crate::tape::{Tape, Tensor};

/// `conv1d` and the activation after it.
pub struct Conv {
    /// Weight [channels, 1, kernel].
    weight: Tensor,
    bias: Option<Tensor>,
    activation: Activation,
}

impl Conv {
    pub fn new(b: &Builder, channels: u64, sizes: ConvSizes) -> Self {
        b.tape().scope("conv1d", || Self {
            weight: b.weight("weight", [channels, 1, sizes.kernel]),
            bias: sizes.bias.then(|| b.weight("bias", [channels])),
            activation: sizes.activation,
        })
    }

    /// Positions that it sees.
    pub fn kernel(&self) -> u64 {
        self.weight.size(2)
    }

    /// `causal_conv1d_fn`, [batch, channels, seq] → the same.
    pub fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let weight = t.squeeze(&self.weight, 1);
        let out = {
            let cast = t.to_dtype(x, weight.dtype());
            let padding = weight.size(1) - 1;
            let out = t.conv1d_depthwise(&cast, &t.unsqueeze(&weight, 1), self.bias.as_ref(), padding);
            t.slice(&out, 2, x.size(2))
        };
        let out = activate(t, self.activation, out);
        t.to_dtype(&out, x.dtype())
    }
}

/// `apply_mask_to_padding_states`.
pub fn masked(t: &Tape, x: &Tensor, mask: Option<&Tensor>) -> Tensor {
    match mask {
        Some(mask) => t.mul(x, &t.unsqueeze(mask, 2)),
        None => x.clone(),
    }
}
