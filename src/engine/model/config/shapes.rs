//! Sizes shared by vision and text encoders.

use super::limits;
use super::section::Section;
use crate::model::ModelError;

/// The sizes that all vision and text encoders share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderShape {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
}

impl EncoderShape {
    /// Elements of one attention head.
    pub fn head_dim(&self) -> u64 {
        self.hidden / self.heads
    }

    /// Reads transformers' usual keys, with `default` for absent ones.
    pub(crate) fn read(s: &Section, default: Self) -> Result<Self, ModelError> {
        let hidden = s.size("hidden_size", default.hidden, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", default.heads, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        Ok(Self {
            hidden,
            intermediate: s.size("intermediate_size", default.intermediate, limits::WIDTH * 4)?,
            layers: s.size("num_hidden_layers", default.layers, limits::LAYERS)?,
            heads,
        })
    }
}

/// Patches of an image and their sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchGrid {
    /// Pixels a side of the image.
    pub image: u64,
    /// Pixels a side of a patch.
    pub patch: u64,
    /// Colour channels.
    pub channels: u64,
}

impl PatchGrid {
    /// Patches along one side; a partial patch is dropped, as the convolution does.
    pub fn side(&self) -> u64 {
        self.image / self.patch
    }

    /// Patches of one image.
    pub fn patches(&self) -> u64 {
        self.side() * self.side()
    }

    /// Reads `image_size`, `patch_size` and `num_channels`.
    pub(crate) fn read(s: &Section, image: u64, patch: u64) -> Result<Self, ModelError> {
        let image = s.side("image_size", image, limits::PIXELS)?;
        Ok(Self {
            image,
            patch: s.side("patch_size", patch.min(image), image)?,
            channels: s.channels()?,
        })
    }
}
