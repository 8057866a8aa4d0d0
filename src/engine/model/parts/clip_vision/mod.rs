//! CLIP's vision tower.

mod config;
mod forward;

pub use config::ClipVisionConfig;
pub(crate) use forward::{BLOCKS, ClipVision};
