//! Configuration of LFM2-VL.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{Activation, limits};
use crate::model::parts::lfm2_decoder::Lfm2Config;
use crate::model::parts::siglip2_vision::Siglip2VisionConfig;

/// LFM2-VL: SigLIP 2's tower, a pixel unshuffle, a two-layer projector, LFM2.
///
/// Source: `transformers/models/lfm2_vl/configuration_lfm2_vl.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct Lfm2VlConfig {
    /// The vision tower.
    pub vision: Siglip2VisionConfig,
    /// The language model.
    pub text: Lfm2Config,
    /// Patches along each side of the square that becomes one token.
    pub factor: u64,
    /// Patches along each side of an image.
    pub side: u64,
    /// The projector.
    pub projector: ProjectorConfig,
}

/// LFM2-VL's projector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectorConfig {
    /// Width between its linear layers.
    pub hidden: u64,
    /// True if its linear layers have biases.
    pub bias: bool,
    /// True if a layer norm comes first.
    pub norm: bool,
    /// Activation between its linear layers.
    pub activation: Activation,
}

/// Pixels a side of the tiles that the processor cuts images into (`tile_size` of `Lfm2VlImageProcessor`), which are the
/// inputs of the tower.
const TILE: u64 = 512;

impl Lfm2VlConfig {
    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let text = s.nested_or_empty("text_config", "LFM2")?;
        text.expect_model_type(&["lfm2"])?;
        let mut text = Lfm2Config::read(&text)?;
        let tied = s.flag("tie_word_embeddings", true)?;
        text.tie_word_embeddings = s.flag("tie_embedding", tied)?;
        let vision = Siglip2VisionConfig::read(&s.nested_or_empty("vision_config", "SigLIP 2 vision")?)?;
        let factor = s.size_or("downsample_factor", 2, limits::COUNT)?;
        let side = s.divide(("tile_size", TILE), ("vision_config.patch_size", vision.patch))?;
        s.divide(
            ("tile_size ÷ vision_config.patch_size", side),
            ("downsample_factor", factor),
        )?;
        Ok(Self {
            projector: ProjectorConfig {
                hidden: s.size_or("projector_hidden_size", 2560, limits::WIDTH * 4)?,
                bias: s.flag("projector_bias", true)?,
                norm: s.flag("projector_use_layernorm", true)?,
                activation: s.activation("projector_hidden_act", Activation::Gelu)?,
            },
            vision,
            text,
            factor,
            side,
        })
    }
}
