//! Configuration of the vision tower of Qwen3-VL and Qwen3.5.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::parts::qwen_vl::QwenPatches;

/// Vision tower of Qwen3-VL and Qwen3.5.
#[derive(Debug, Clone, PartialEq)]
pub struct Qwen3VlVisionConfig {
    /// Blocks and patches.
    pub patches: QwenPatches,
    /// Width of the residual stream.
    pub width: u64,
    /// Width inside the MLP.
    pub intermediate: u64,
    /// Width of each merger's output: the language model's.
    pub output: u64,
    /// Activation of the MLP.
    pub activation: Activation,
    /// Learned positions, a square grid that is interpolated to the image's grid.
    pub positions: u64,
    /// Blocks after which a merger feeds the language model; none in Qwen3.5.
    pub deepstack_layers: Vec<u64>,
    /// True if the mergers of those blocks are made before everything else, as in Qwen3-Omni.
    pub makes_mergers_first: bool,
}

impl Qwen3VlVisionConfig {
    /// Reads a tower, and the blocks that feed the language model if it `has_deepstack`.
    pub(crate) fn read(s: &Section, has_deepstack: bool) -> Result<Self, ModelError> {
        let patches = QwenPatches::read(s, 27, 16)?;
        let width = s.size("hidden_size", 1152, limits::WIDTH)?;
        s.divide(("hidden_size", width), ("num_heads", patches.heads))?;
        let deepstack_layers = match has_deepstack {
            true => s
                .optional_indices("deepstack_visual_indexes", patches.layers - 1)?
                .unwrap_or_else(|| vec![8, 16, 24]),
            false => Vec::new(),
        };
        Ok(Self {
            patches,
            width,
            intermediate: s.size("intermediate_size", 4304, limits::WIDTH * 4)?,
            output: s.size("out_hidden_size", 3584, limits::WIDTH)?,
            activation: s.activation("hidden_act", Activation::GeluTanh)?,
            positions: s.size("num_position_embeddings", 2304, limits::POSITIONS)?,
            deepstack_layers,
            makes_mergers_first: false,
        })
    }

    /// Qwen3-Omni's tower.
    pub(crate) fn read_omni(s: &Section) -> Result<Self, ModelError> {
        Ok(Self {
            makes_mergers_first: true,
            ..Self::read(s, true)?
        })
    }
}
