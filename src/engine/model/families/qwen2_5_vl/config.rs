//! Configuration of Qwen2.5-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::decoder::DecoderConfig;
use crate::model::families::qwen2_vl;
use crate::model::parts::qwen_vl::QwenPatches;

/// Qwen2.5-VL: a tower of windowed attention with RMS norms and gated MLPs, a merger, Qwen2.
///
/// Source: `transformers/models/qwen2_5_vl/configuration_qwen2_5_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen25VlConfig {
    /// The vision tower.
    pub vision: Qwen25VlVisionConfig,
    /// The language model, with multimodal rope.
    pub text: DecoderConfig,
    /// Token id that image features replace.
    pub image_token: u64,
}

/// Qwen2.5-VL's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen25VlVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the gated MLP.
    pub intermediate: u64,
    /// Width of the merger's output: the language model's.
    pub output: u64,
    /// Activation of the gate.
    pub activation: Activation,
    /// Pixels a side of an attention window.
    pub window: u64,
    /// Blocks that see the whole image instead of a window.
    pub full_attention_layers: Vec<u64>,
    /// Heads of keys and values, if query heads share them, as in EXAONE 4.5.
    pub shared_heads: Option<u64>,
    /// True if queries, keys and values have a projection each, as in Qwen2.5-Omni.
    pub projects_apart: bool,
}

impl Qwen25VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            vision: Qwen25VlVisionConfig::read(&s.nested("vision_config", "Qwen2.5-VL vision")?)?,
            text: qwen2_vl::read_text(s)?,
            image_token: s.index_of_either(["image_token_id", "image_token_index"], 151_655)?,
        })
    }
}

impl Qwen25VlVisionConfig {
    /// EXAONE 4.5's tower.
    pub(crate) fn read_grouped(s: &Section) -> Result<Self, ModelError> {
        let tower = Self::read(s)?;
        let shared = s.size_or("num_key_value_heads", 8, limits::HEADS)?;
        let heads = tower.patches.heads;
        s.divide(("num_heads", heads), ("num_key_value_heads", shared))?;
        Ok(Self {
            shared_heads: Some(shared),
            ..tower
        })
    }

    /// Qwen2.5-Omni's tower.
    pub(crate) fn read_apart(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            projects_apart: true,
            ..Self::read(s)?
        })
    }

    fn read(s: &Section) -> Result<Self, ModelError> {
        let patches = QwenPatches::read(s, 32, 14)?;
        let width = s.size("hidden_size", 3584, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
        let full = s.optional_indices("fullatt_block_indexes", limits::LAYERS)?;
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 3420, limits::WIDTH * 4)?,
            output: s.size("out_hidden_size", 3584, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::Silu)?,
            window: s.size_or("window_size", 112, limits::PIXELS)?,
            full_attention_layers: full.unwrap_or_else(|| vec![7, 15, 23, 31]),
            shared_heads: None,
            projects_apart: false,
        })
    }

    /// Tokens a side of an attention window, after the merger joins patches.
    pub fn window_tokens(&self) -> u64 {
        (self.window / self.patches.merge / self.patches.patch).max(1)
    }
}
