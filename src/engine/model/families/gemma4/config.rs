//! Configuration of Gemma 4 around its language model.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;
use crate::model::families::gemma4_text::Gemma4TextConfig;

/// Tokens that the processor makes of an image at most (`max_soft_tokens`), to which it pads all.
pub const SOFT_TOKENS: u64 = 280;

/// Gemma 4 without towers: patches of images are embedded by two linear maps (`gemma4_unified`), or there are none.
///
/// Source: `transformers/models/{gemma4,gemma4_unified}/configuration_*.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4Config {
    /// The language model.
    pub text: Gemma4TextConfig,
    /// Embedding of images; `None` for a model of text alone.
    pub vision: Option<PatchEmbedding>,
    /// Elements of a frame of audio, of which only the projection is made.
    pub audio: Option<u64>,
    /// True for `gemma4_unified`.
    pub unified: bool,
}

/// Embedding of merged patches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatchEmbedding {
    /// Pixels a side of a merged patch, which is one token.
    pub patch: u64,
    /// Width of a patch's embedding.
    pub width: u64,
    /// Positions along each axis.
    pub positions: u64,
}

impl PatchEmbedding {
    /// Elements of a patch.
    pub const fn elements(self) -> u64 {
        self.patch * self.patch * 3
    }

    /// Tokens of an image of [height, width] pixels (`get_aspect_ratio_preserving_size`).
    pub fn tokens(self, [height, width]: [u64; 2]) -> u64 {
        let (h, w, patch) = (height as f64, width as f64, self.patch as f64);
        let factor = ((SOFT_TOKENS as f64 * patch * patch) / (h * w)).sqrt();
        let [rows, columns] = [h, w].map(|side| (factor * side / patch).floor() as u64);
        match [rows, columns] {
            [0, _] => (width / height.max(1)).min(SOFT_TOKENS),
            [_, 0] => (height / width.max(1)).min(SOFT_TOKENS),
            [rows, columns] => rows * columns,
        }
    }
}

impl Gemma4Config {
    pub(crate) fn read(s: &Section, unified: bool) -> Result<Self, ModelError> {
        let name = if unified { "gemma4_unified_text" } else { "gemma4_text" };
        let text = s.nested_or_empty("text_config", "Gemma 4 language")?;
        text.expect_model_type(&[name])?;
        let mut text = Gemma4TextConfig::read(&text, unified)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        if !unified {
            for key in ["vision_config", "audio_config"] {
                if let Some(value) = s.value(key) {
                    return Err(s.wrong(key, value, "null: its tower is not simulated"));
                }
            }
        }
        let vision = s.optional_nested("vision_config", "Gemma 4 vision")?;
        let audio = s.optional_nested("audio_config", "Gemma 4 audio")?;
        let width_of_audio = |audio: Section| audio.size("audio_embed_dim", 640, limits::WIDTH);
        Ok(Self {
            text,
            vision: vision.as_ref().map(embedding).transpose()?,
            audio: audio.map(width_of_audio).transpose()?,
            unified,
        })
    }
}

fn embedding(s: &Section) -> Result<PatchEmbedding, ModelError> {
    let patch = s.size("patch_size", 16, limits::COUNT)? * s.size("pooling_kernel_size", 3, limits::COUNT)?;
    let width = s.size("mm_embed_dim", 3840, limits::WIDTH)?;
    let projected = s.size("output_proj_dims", 3840, limits::WIDTH)?;
    s.equal(("mm_embed_dim", width), ("output_proj_dims", projected))?;
    Ok(PatchEmbedding {
        patch,
        width,
        positions: s.size("mm_posemb_size", 1120, limits::POSITIONS)?,
    })
}
