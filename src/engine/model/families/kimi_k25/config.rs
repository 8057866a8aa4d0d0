//! Configuration of Kimi-K2.5.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::decoders::{self, deepseek_v3};
use crate::model::parts::qwen_vl::{QwenPatches, Resize, Widening};

/// Kimi-K2.5: a tower over packed patches, a projector of merged patches, DeepSeek-V3 or any other decoder.
///
/// Source: `transformers/models/kimi_k25/configuration_kimi_k25.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct KimiK25Config {
    /// The vision tower.
    pub vision: KimiVisionConfig,
    /// The language model.
    pub text: DecoderConfig,
}

/// Kimi-K2.5's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct KimiVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Side of the square grid of learned positions, which is interpolated to the image's grid.
    pub side: u64,
    /// Frames that have positions of their own.
    pub frames: u64,
}

/// Most patches of an image (`Kimi_K25ImageProcessor.max_patches`).
const MOST_PATCHES: u64 = 16_384;

/// Most patches along a side (`Kimi_K25ImageProcessor.size`).
const LONGEST: u64 = 512;

impl KimiK25Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let vision = s.nested_or_empty("vision_config", "Kimi-K2.5 vision")?;
        let vision = KimiVisionConfig::read(&vision)?;
        let text = s.nested_or_empty("text_config", "Kimi-K2.5 language")?;
        let mut text = match text.optional_text("model_type")? {
            // What the published configuration calls it.
            Some("kimi_k2") => DecoderConfig::read(&text, &deepseek_v3::FAMILY)?,
            _ => decoders::read_text(&text, "deepseek_v3")?,
        };
        // Whatever the language model's own configuration says.
        text.tie_word_embeddings = s.flag("tie_word_embeddings", true)?;
        let normed = s.size_or("projection_hidden_size", 1152, limits::WIDTH)?;
        s.equal(
            ("projection_hidden_size", normed),
            ("vision_config.hidden_size", vision.width),
        )?;
        Ok(Self { vision, text })
    }
}

impl KimiVisionConfig {
    fn read(s: &Section) -> Result<Self, ModelError> {
        let patch = s.size("patch_size", 14, limits::PIXELS)?;
        s.only("merge_kernel_size", "two equal numbers", |sides| {
            sides.as_array().is_some_and(|sides| sides.len() == 2)
        })?;
        let merge = s.side("merge_kernel_size", 2, limits::COUNT)?;
        let width = s.size("hidden_size", 1152, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 16, limits::HEADS)?;
        let head = s.divide(("hidden_size", width), ("num_attention_heads", heads))?;
        if head % 4 != 0 {
            return Err(s.wrong("hidden_size", &width.into(), "heads of a multiple of 4 elements"));
        }
        s.only("head_dim", "none: its rotary embedding alone reads it", |_| false)?;
        if let Some(table) = s.optional_nested("rope_parameters", "rotary embedding")? {
            table.only("rope_type", "\"axial\"", |kind| kind == "axial")?;
        }
        let side = s.size_or("pos_emb_height", 64, limits::COUNT)?;
        let columns = s.size_or("pos_emb_width", 64, limits::COUNT)?;
        s.equal(("pos_emb_height", side), ("pos_emb_width", columns))?;
        Ok(Self {
            patches: QwenPatches {
                layers: s.size("num_hidden_layers", 27, limits::LAYERS)?,
                heads,
                channels: 3,
                patch,
                temporal_patch: 1,
                merge,
                resize: Resize {
                    pixels: [0, MOST_PATCHES * patch * patch],
                    widening: Widening::Padded(LONGEST),
                },
            },
            width,
            intermediate: s.size("intermediate_size", 4304, limits::WIDTH * 4)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            side,
            frames: s.size_or("pos_emb_time", 4, limits::COUNT)?,
        })
    }
}
