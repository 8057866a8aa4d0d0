//! Configuration of SAM's vision tower.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, PatchGrid, limits};

/// Fewest patches a side that are simulated: layouts of images of a single patch were not compared.
const LEAST_SIDE: u64 = 8;

/// SAM's vision tower.
///
/// Sources: `SamVisionConfig` of `transformers/models/sam/configuration_sam.py`, `GotOcr2VisionConfig` of
/// `transformers/models/got_ocr2/configuration_got_ocr2.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct SamVisionConfig {
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Blocks.
    pub layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// Channels that the neck makes.
    pub output_channels: u64,
    /// Image and patch sizes.
    pub grid: PatchGrid,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Dropout of attention probabilities, where attention is eager.
    pub attention_dropout: f64,
    /// True if projections of queries, keys and values have biases.
    pub qkv_bias: bool,
    /// True if patches have learned positions.
    pub has_positions: bool,
    /// True if attention adds relative positions to its scores.
    pub has_relative_positions: bool,
    /// Patches a side of the windows of most blocks; 0 if all blocks see whole images.
    pub window: u64,
    /// Indices of the blocks that see whole images.
    pub global: Vec<u64>,
}

impl SamVisionConfig {
    /// Patches a side of the windows of a block; 0 if it sees whole images.
    pub fn window_of(&self, index: usize) -> u64 {
        if self.global.contains(&(index as u64)) {
            0
        } else {
            self.window
        }
    }

    /// Reads the tower; `ratio` is the default of `mlp_ratio` in a class that has it.
    pub(crate) fn read(s: &Section, ratio: Option<f64>) -> Result<Self, ModelError> {
        Self::read_of_side(s, ratio, 1024)
    }

    /// Reads the tower of a class whose images have this side by default.
    pub(crate) fn read_of_side(s: &Section, ratio: Option<f64>, image: u64) -> Result<Self, ModelError> {
        for key in ["image_size", "patch_size"] {
            s.only(key, "one number, by which positions are counted", |value| {
                !value.is_array()
            })?;
        }
        let hidden = s.size("hidden_size", 768, limits::WIDTH)?;
        let heads = s.size("num_attention_heads", 12, limits::HEADS)?;
        s.divide(("hidden_size", hidden), ("num_attention_heads", heads))?;
        let grid = PatchGrid::read(s, image, 16)?;
        if grid.side() < LEAST_SIDE {
            let allowed = format!("an image of at least {LEAST_SIDE} patches a side");
            return Err(s.wrong("image_size", &grid.image.into(), &allowed));
        }
        let intermediate = match (s.optional_size("mlp_dim", limits::WIDTH * 4)?, ratio) {
            (Some(fixed), _) => fixed,
            (None, None) => 3072,
            (None, Some(ratio)) => {
                let ratio = s.optional_number("mlp_ratio")?.unwrap_or(ratio);
                let width = (hidden as f64 * ratio) as u64;
                let most = limits::WIDTH * 4;
                if !(1..=most).contains(&width) {
                    let allowed = format!("a ratio that makes its MLP 1 to {most} wide");
                    return Err(s.wrong("mlp_ratio", &ratio.into(), &allowed));
                }
                width
            }
        };
        Ok(Self {
            hidden,
            intermediate,
            layers: s.size("num_hidden_layers", 12, limits::LAYERS)?,
            heads,
            output_channels: s.size_or("output_channels", 256, limits::WIDTH)?,
            grid,
            activation: s.activation("hidden_act", Activation::Gelu)?,
            attention_dropout: s.probability("attention_dropout", 0.0)?,
            qkv_bias: s.flag("qkv_bias", true)?,
            has_positions: s.flag("use_abs_pos", true)?,
            has_relative_positions: s.flag("use_rel_pos", true)?,
            window: s.optional_count("window_size", limits::PIXELS)?.unwrap_or(14),
            global: s
                .optional_indices("global_attn_indexes", limits::LAYERS)?
                .unwrap_or_else(|| vec![2, 5, 8, 11]),
        })
    }
}
