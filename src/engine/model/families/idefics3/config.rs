//! Configuration of Idefics3 and SmolVLM.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders;
use crate::model::parts::idefics_vision::IdeficsVisionConfig;

/// Idefics3 and SmolVLM: a SigLIP-like tower on tiles, a pixel shuffle, one linear projection, Llama.
///
/// Source: `transformers/models/{idefics3,smolvlm}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Idefics3Config {
    /// True if read from a `smolvlm` file, false for an `idefics3` file.
    pub smolvlm: bool,
    /// The vision tower, run on each tile.
    pub vision: IdeficsVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
    /// Patches along each side of the square that becomes one token.
    pub scale_factor: u64,
    /// Token id that image features replace.
    pub image_token: u64,
}

impl Idefics3Config {
    /// Image tokens of one tile.
    pub fn tile_tokens(&self) -> u64 {
        self.vision.grid.patches() / (self.scale_factor * self.scale_factor)
    }

    /// Tiles that the processor cuts an image of `[height, width]` pixels into, plus the downscaled whole image.
    ///
    /// Source: `transformers/models/idefics3/image_processing_idefics3.py`, with the longest side that the
    /// published checkpoints' `preprocessor_config.json` asks for: four tiles.
    pub fn tiles(&self, [height, width]: [u64; 2]) -> u64 {
        let side = self.vision.grid.image;
        let longest = 4 * side;
        let aspect = width as f64 / height as f64;
        let short = if width >= height {
            longest as f64 / aspect
        } else {
            longest as f64 * aspect
        } as u64;
        // Odd sides are made even.
        let short = short.next_multiple_of(2).max(1);
        longest.div_ceil(side) * short.div_ceil(side) + 1
    }

    pub(crate) fn read(s: &Section, smolvlm: bool) -> Result<Self, ModelError> {
        let mut text = decoders::read_text(&s.nested("text_config", "language")?, "llama")?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        Ok(Self {
            smolvlm,
            vision: IdeficsVisionConfig::idefics3(&s.nested("vision_config", "Idefics3 vision")?)?,
            text,
            scale_factor: s.size_or("scale_factor", 2, limits::COUNT)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 128_257)?,
        })
    }
}
