//! SigLIP 2's vision tower for images of any aspect ratio (NaFlex).

mod config;
mod forward;

pub use config::Siglip2VisionConfig;
pub(crate) use forward::Siglip2Vision;
