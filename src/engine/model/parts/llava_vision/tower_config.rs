//! Configuration of the vision tower of LLaVA's families: CLIP's or SigLIP's.

use super::features::FeatureSelect;
use crate::model::ModelError;
use crate::model::config::section::Section;
use crate::model::config::{EncoderShape, PatchGrid};
use crate::model::parts::clip_vision::ClipVisionConfig;
use crate::model::parts::siglip_vision::SiglipVisionConfig;

/// A tower that makes one feature of each patch.
#[derive(Debug, Clone, PartialEq)]
pub enum TowerConfig {
    /// CLIP's, with a class token before the patches.
    Clip(ClipVisionConfig),
    /// SigLIP's.
    Siglip(SiglipVisionConfig),
}

impl TowerConfig {
    const CLIP: &'static str = "clip_vision_model";
    const SIGLIP: &'static str = "siglip_vision_model";

    /// Reads the tower of a file that takes CLIP's if it names none.
    pub(crate) fn clip_or_other(s: &Section) -> Result<Self, ModelError> {
        Self::read(s, Self::CLIP)
    }

    /// Reads the tower of a file that takes SigLIP's if it names none.
    pub(crate) fn siglip_or_other(s: &Section) -> Result<Self, ModelError> {
        Self::read(s, Self::SIGLIP)
    }

    fn read(s: &Section, default: &str) -> Result<Self, ModelError> {
        s.expect_model_type(&[Self::CLIP, Self::SIGLIP])?;
        Ok(match s.optional_text("model_type")?.unwrap_or(default) {
            Self::SIGLIP => Self::Siglip(SiglipVisionConfig::read(s)?),
            _ => Self::Clip(ClipVisionConfig::read(s)?),
        })
    }

    /// Sizes of the blocks.
    pub fn shape(&self) -> EncoderShape {
        match self {
            Self::Clip(c) => EncoderShape {
                hidden: c.hidden,
                intermediate: c.intermediate,
                layers: c.layers,
                heads: c.heads,
            },
            Self::Siglip(c) => c.shape,
        }
    }

    /// Image and patch sizes.
    pub fn grid(&self) -> PatchGrid {
        match self {
            Self::Clip(c) => PatchGrid {
                image: c.image,
                patch: c.patch,
                channels: c.channels,
            },
            Self::Siglip(c) => c.grid,
        }
    }

    /// Positions of one image: its patches, and the class token if there is one.
    pub fn positions(&self) -> u64 {
        self.grid().patches() + u64::from(self.has_class_token())
    }

    /// Returns true if a class token stands before the patches.
    pub const fn has_class_token(&self) -> bool {
        matches!(self, Self::Clip(_))
    }

    /// Reads the strategy of a model that needs one feature of each patch: all positions, but for a class token.
    pub(crate) fn one_of_each_patch(&self, s: &Section, default: FeatureSelect) -> Result<FeatureSelect, ModelError> {
        let (needed, name) = match self.has_class_token() {
            true => (FeatureSelect::Default, "default"),
            false => (FeatureSelect::Full, "full"),
        };
        match FeatureSelect::read_or(s, default)? {
            given if given == needed => Ok(given),
            _ => {
                let key = "vision_feature_select_strategy";
                let given = s.value(key).cloned().unwrap_or_default();
                Err(s.wrong(
                    key,
                    &given,
                    &format!("\"{name}\" beside this tower, for one feature of each patch"),
                ))
            }
        }
    }
}
