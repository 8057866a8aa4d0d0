//! Properties of a model that settings need.

use super::Takes;
use crate::setup::Needs;

impl Needs {
    /// Returns true if a model that takes this has the property.
    pub const fn met_by(self, takes: Takes) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text => takes.text,
            Self::ImageCount => takes.image_count,
            Self::ImageSize => takes.image_size,
            Self::Grid => takes.grid,
            Self::Frames => takes.frames,
            Self::Parts => takes.parts,
        }
    }
}
