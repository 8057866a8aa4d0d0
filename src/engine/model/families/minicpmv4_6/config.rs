//! Configuration of MiniCPM-V 4.6.

use serde_json::json;

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{EncoderShape, PatchGrid, limits};
use crate::model::parts::delta_decoder::{DeltaDecoderConfig, QWEN3_5};
use crate::model::parts::packed_vision::PackedVisionConfig;
use crate::model::parts::qwen_vl::{Resize, Widening};

/// MiniCPM-V 4.6: a tower of SigLIP's blocks that merges patches by windows after one of them, a merger, Qwen3.5's
/// language model.
///
/// Source: `transformers/models/minicpmv4_6/configuration_minicpmv4_6.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniCpmV46Config {
    /// The vision tower.
    pub vision: MiniCpmVisionConfig,
    /// The language model.
    pub text: DeltaDecoderConfig,
    /// Rounds in which the merger joins squares of 2 × 2 patches.
    pub rounds: u64,
    /// True if image tokens have an id; the forward looks at no image otherwise.
    pub has_images: bool,
}

/// MiniCPM-V 4.6's vision tower.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniCpmVisionConfig {
    /// Blocks and patches.
    pub tower: PackedVisionConfig,
    /// Learned positions along one side of their square grid.
    pub side: u64,
    /// Block after which windows of 2 × 2 patches are merged.
    pub merges_after: u64,
    /// True if windows are merged (`downsample_mode`).
    pub merges: bool,
}

/// `MiniCPMV4_6VisionConfig`.
const SHAPE: EncoderShape = EncoderShape {
    hidden: 768,
    intermediate: 3072,
    layers: 12,
    heads: 12,
};

/// Not used: the processor cuts images into slices.
const RESIZE: Resize = Resize {
    pixels: [1, u64::MAX],
    widening: Widening::Never,
};

impl MiniCpmV46Config {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "Qwen3.5 language")?;
        text.expect_model_type(&["qwen3_5_text"])?;
        let mut text = DeltaDecoderConfig::read(&text, &QWEN3_5)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        s.only(
            "merge_kernel_size",
            "[2, 2], the square that its merger is as wide as",
            |v| *v == json!([2, 2]),
        )?;
        let merges = s.optional_text("downsample_mode")?.unwrap_or("16x") != "4x";
        let rounds = s.size_or("merger_times", 1, 8)?;
        let merge = 1 << (rounds + u64::from(merges));
        let vision = s.nested_or_empty("vision_config", "MiniCPM-V vision")?;
        vision.only("window_kernel_size", "[2, 2], by which sizes are halved", |v| {
            *v == json!([2, 2])
        })?;
        let tower = PackedVisionConfig::read(&vision, SHAPE, 16, (merge, RESIZE))?;
        let merges_after = s.optional_count("insert_layer_id", limits::LAYERS)?.unwrap_or(6);
        s.only("insert_layer_id", "the index of one of the tower's blocks", |_| {
            merges_after < tower.shape.layers
        })?;
        if merges_after >= tower.shape.layers {
            return Err(vision.wrong(
                "num_hidden_layers",
                &tower.shape.layers.into(),
                "more blocks than `insert_layer_id`, 6 by default",
            ));
        }
        let grid = PatchGrid::read(&vision, 224, 16)?;
        Ok(Self {
            vision: MiniCpmVisionConfig {
                tower,
                side: grid.side(),
                merges_after,
                merges,
            },
            text,
            rounds,
            has_images: s.value("image_token_id").is_some(),
        })
    }
}
