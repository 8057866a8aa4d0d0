//! Pixtral's vision tower: images of any size in one row of patches.

mod config;
mod forward;
mod positions;

pub use config::PixtralVisionConfig;
pub(crate) use forward::{PixtralVision, side_in_patches};
