//! SigLIP's vision tower.

mod config;
mod forward;
mod head;

pub use config::SiglipVisionConfig;
pub(crate) use forward::{BLOCKS, SiglipVision};
pub(crate) use head::PoolingHead;
