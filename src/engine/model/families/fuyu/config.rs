//! Configuration of Fuyu.

use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{PatchGrid, limits};
use crate::model::families::persimmon::PersimmonConfig;
use crate::model::parts::rotary_decoder::RotaryDecoderConfig;
use crate::model::parts::text::TextFamily;
use crate::setup::Setup;

/// Fuyu: Persimmon, with a linear layer of image patches in place of a vision tower.
///
/// Source: `transformers/models/fuyu/configuration_fuyu.py`.
#[derive(Debug, Clone, PartialEq)]
pub struct FuyuConfig {
    /// Images and patches.
    pub grid: PatchGrid,
    /// The language model.
    pub text: RotaryDecoderConfig,
}

impl FuyuConfig {
    /// Patches along each side of a square image.
    pub fn patches_a_side(&self, setup: &Setup) -> u64 {
        setup.image.unwrap_or(self.grid.image).div_ceil(self.grid.patch)
    }

    pub(crate) fn read(s: &Section) -> Result<Self, ModelError> {
        let section = s.nested("text_config", "language")?;
        section.expect_model_type(&["persimmon"])?;
        let PersimmonConfig(mut text) = PersimmonConfig::read("persimmon", &section)?;
        text.tie_word_embeddings = s.flag("tie_word_embeddings", false)?;
        let hidden = s.size_or("hidden_size", 4096, limits::WIDTH)?;
        s.equal(("hidden_size", hidden), ("text_config.hidden_size", text.hidden))?;
        Ok(Self {
            grid: PatchGrid::read(s, 300, 30)?,
            text,
        })
    }
}
