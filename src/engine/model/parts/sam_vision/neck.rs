//! `SamVisionNeck`: two convolutions with layer norms over the channels.

use super::config::SamVisionConfig;
use crate::nn::{Builder, LayerNorm};
use crate::tape::{Module, Tape, Tensor};

/// Convolutions that give the tower's output its channels.
pub(crate) struct Neck {
    module: Module,
    conv1: Tensor,
    layer_norm1: LayerNorm,
    conv2: Tensor,
    layer_norm2: LayerNorm,
}

impl Neck {
    pub fn new(b: &Builder, c: &SamVisionConfig) -> Self {
        let out = c.output_channels;
        Self {
            module: b.module(),
            conv1: b.weight("conv1.weight", [out, c.hidden, 1, 1]),
            layer_norm1: LayerNorm::new(b, "layer_norm1", out),
            conv2: b.weight("conv2.weight", [out, out, 3, 3]),
            layer_norm2: LayerNorm::new(b, "layer_norm2", out),
        }
    }

    /// [images, rows, columns, width] → [images, channels, rows, columns].
    pub fn call(&self, t: &Tape, x: &Tensor) -> Tensor {
        self.module.call(t, move || {
            let mut h = t.permute(x, &[0, 3, 1, 2]);
            h = t.scope("conv1", || t.conv2d(&h, &self.conv1, [1, 0]));
            h = self.layer_norm1.call_over_channels(t, h);
            h = t.scope("conv2", || t.conv2d(&h, &self.conv2, [1, 1]));
            self.layer_norm2.call_over_channels(t, h)
        })
    }
}
