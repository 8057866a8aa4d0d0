//! Configuration of Pixtral's vision tower.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, EncoderShape, PatchGrid};

/// Pixtral's vision tower: RMS norms, rotary positions of rows and columns, a gated MLP, no biases.
///
/// Source: `transformers/models/pixtral/configuration_pixtral.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct PixtralVisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Patch size, and the longest side of an image.
    pub grid: PatchGrid,
    /// Activation of the gate.
    pub activation: Activation,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl PixtralVisionConfig {
    const SHAPE: EncoderShape = EncoderShape {
        hidden: 1024,
        intermediate: 4096,
        layers: 24,
        heads: 16,
    };

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        s.expect_model_type(&["pixtral"])?;
        let shape = EncoderShape::read(s, Self::SHAPE)?;
        s.divide(
            ("hidden_size ÷ num_attention_heads", shape.head_dim()),
            ("its quarters", 4),
        )?;
        Ok(Self {
            shape,
            grid: PatchGrid::read(s, 1024, 16)?,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }

    /// Pixels `[height, width]` to which the processor resizes an image, for patches of which `merge` a side are merged
    /// (`get_resize_output_image_size` in `transformers/models/pixtral/image_processing_pixtral.py`).
    pub fn resized(&self, [height, width]: [u64; 2], merge: u64) -> [u64; 2] {
        let (longest, unit) = (self.grid.image as f64, self.grid.patch * merge);
        let ratio = (height as f64 / longest).max(width as f64 / longest);
        [height, width].map(|n| {
            let scaled = if ratio > 1.0 {
                (n as f64 / ratio).floor() as u64
            } else {
                n
            };
            scaled.max(1).div_ceil(unit) * unit
        })
    }
}
