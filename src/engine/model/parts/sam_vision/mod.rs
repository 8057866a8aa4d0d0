//! SAM's vision tower: blocks over windows and over whole images, with relative positions.

mod attention;
mod block;
mod config;
mod forward;
mod neck;

pub use config::SamVisionConfig;
pub(crate) use forward::SamVision;
pub(crate) use neck::Neck;
