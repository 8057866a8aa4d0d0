//! Configuration of PaddleOCR-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{EncoderShape, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders::ernie4_5;
use crate::model::parts::packed_vision::PackedVisionConfig;
use crate::model::parts::qwen_vl::{Resize, Widening};

/// PaddleOCR-VL: a tower of SigLIP's blocks with learned and rotary positions, a projector, a decoder like ERNIE 4.5's.
///
/// Source: `transformers/models/paddleocr_vl/configuration_paddleocr_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct PaddleOcrVlConfig {
    /// The vision tower.
    pub vision: PaddleVisionConfig,
    /// The language model, with multimodal rope.
    pub text: DecoderConfig,
}

/// PaddleOCR-VL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct PaddleVisionConfig {
    /// Blocks and patches.
    pub tower: PackedVisionConfig,
    /// Learned positions, a square grid that is interpolated to the image's grid.
    pub positions: u64,
}

/// `PaddleOCRVisionConfig`.
const SHAPE: EncoderShape = EncoderShape {
    hidden: 1152,
    intermediate: 4304,
    layers: 27,
    heads: 16,
};

/// `PaddleOCRVLImageProcessor`.
const RESIZE: Resize = Resize {
    pixels: [384 * 384, 1536 * 1536],
    widening: Widening::Rounded,
};

impl PaddleOcrVlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = s.nested_or_empty("vision_config", "PaddleOCR-VL vision")?;
        let merge = vision.size_or("spatial_merge_size", 2, limits::COUNT)?;
        let tower = PackedVisionConfig::read(&vision, SHAPE, 14, (merge, RESIZE))?;
        let side = vision.size("image_size", 384, limits::PIXELS)? / tower.patches.patch;
        vision.only("image_size", "at least one patch a side", |_| side > 0)?;
        Ok(Self {
            vision: PaddleVisionConfig {
                tower,
                positions: side * side,
            },
            text: text(s)?,
        })
    }
}

/// Reads the language model, under `text_config`, or flat in the file as on the hub.
///
/// The head is tied if either configuration says so, the whole one or the language model's; each does by default. In a flat
/// file `tie_word_embeddings` is the whole one's alone, and the language model's keeps its default: always tied.
fn text(s: &Section) -> Result<DecoderConfig, ModelError> {
    let nested = s.optional_nested("text_config", "PaddleOCR-VL language")?;
    let section = nested.unwrap_or(*s).with_defaults();
    let mut text = DecoderConfig::read(&section, &ernie4_5::FAMILY)?;
    text.tie_word_embeddings |= nested.is_none() || s.flag("tie_word_embeddings", true)?;
    text.attention_dropout = 0.0;
    let sections = text.rope.mrope_section.clone().unwrap_or_else(|| vec![16, 24, 24]);
    let split: u64 = sections.iter().sum();
    section.equal(
        ("sum of rope_parameters.mrope_section", split),
        ("head_dim ÷ 2", text.head_dim / 2),
    )?;
    Ok(text)
}
