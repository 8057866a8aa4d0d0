//! Configuration of Llama 4.

use super::text_config::Llama4TextConfig;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{EncoderShape, PatchGrid, limits};
use crate::model::parts::pixel_shuffle;

/// Llama 4: a tower with rotary positions on two axes, a pixel shuffle, a decoder with experts.
///
/// Source: `transformers/models/llama4/configuration_llama4.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Llama4Config {
    /// The vision tower.
    pub vision: Llama4VisionConfig,
    /// The language model.
    pub text: Llama4TextConfig,
}

/// Llama 4's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Llama4VisionConfig {
    /// Sizes of the blocks.
    pub shape: EncoderShape,
    /// Tile and patch sizes.
    pub grid: PatchGrid,
    /// Patches along each side of the square that becomes one token (1 ÷ `pixel_shuffle_ratio`).
    pub shuffle: u64,
    /// Width inside the adapter, after its first linear layer.
    pub adapter_input: u64,
    /// Width of the adapter's second linear layer.
    pub adapter_output: u64,
    /// Width that the projector takes.
    pub output: u64,
    /// Dropout inside the adapter.
    pub adapter_dropout: f64,
    /// Dropout of attention probabilities.
    pub attention_dropout: f64,
}

impl Llama4Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested("text_config", "Llama 4 text")?;
        text.expect_model_type(&["llama4_text"])?;
        let text = Llama4TextConfig::read(&text)?;
        s.same_tie(false, text.tie_word_embeddings)?;
        Ok(Self {
            vision: Llama4VisionConfig::read(&s.nested("vision_config", "Llama 4 vision")?)?,
            text,
        })
    }
}

impl Llama4VisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let default = EncoderShape {
            hidden: 768,
            intermediate: 5632,
            layers: 34,
            heads: 16,
        };
        let shape = EncoderShape::read(s, default)?;
        s.divide(
            ("hidden_size", shape.hidden),
            ("4 × num_attention_heads", 4 * shape.heads),
        )?;
        let grid = PatchGrid::read(s, 448, 14)?;
        s.divide(("image_size", grid.image), ("patch_size", grid.patch))?;
        let shuffle = pixel_shuffle::read_inverse_factor(s, "pixel_shuffle_ratio")?;
        s.divide(
            ("image_size ÷ patch_size", grid.side()),
            ("1 ÷ pixel_shuffle_ratio", shuffle),
        )?;
        Ok(Self {
            shape,
            grid,
            shuffle,
            adapter_input: s.size_or("projector_input_dim", 4096, limits::WIDTH)?,
            adapter_output: s.size_or("projector_output_dim", 4096, limits::WIDTH)?,
            output: s.size_or("vision_output_dim", 7680, limits::WIDTH)?,
            adapter_dropout: s.probability("projector_dropout", 0.0)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
        })
    }

    /// Tokens of a tile.
    pub(super) fn tokens(&self) -> u64 {
        self.grid.patches() / (self.shuffle * self.shuffle)
    }
}
