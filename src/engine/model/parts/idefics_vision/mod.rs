//! Vision tower of Idefics2, Idefics3 and SmolVLM, and what selects its input.

mod config;
mod forward;
mod tiles;

pub use config::IdeficsVisionConfig;
pub(crate) use forward::IdeficsVision;
pub(crate) use tiles::{pixel_mask, real_patches, real_tiles};
