//! Patch embedding of towers over packed patches.

use crate::nn::Builder;
use crate::tape::{Tape, Tensor};

/// `patch_embedding`: a convolution whose kernel is one patch.
pub struct PatchConv {
    weight: Tensor,
    bias: Tensor,
}

impl PatchConv {
    /// Makes a weight [width, channels, patch, patch] and a bias.
    pub fn new(b: &Builder, channels: u64, patch: u64, width: u64) -> Self {
        b.tape().scope("patch_embedding", || Self {
            weight: b.weight("weight", [width, channels, patch, patch]),
            bias: b.weight("bias", [width]),
        })
    }

    /// Patches, of which each has the elements of the kernel, [patches, channels, patch, patch] in the type of the weight →
    /// [patches, width, 1, 1].
    pub fn of_patches(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let shape = *self.weight.shape();
        let patches = t.view(
            pixels,
            [
                pixels.numel() / (shape[1] * shape[2] * shape[3]),
                shape[1],
                shape[2],
                shape[3],
            ],
        );
        let patches = t.to_dtype(&patches, t.type_of(&self.weight));
        self.forward(t, &patches)
    }

    /// Pixels [images, channels, height, width] → [images, width, rows, columns].
    pub fn forward(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        t.scope("patch_embedding", || {
            t.conv_patches(pixels, &self.weight, Some(&self.bias))
        })
    }
}
