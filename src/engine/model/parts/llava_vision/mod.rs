//! Vision half of LLaVA-1.5 and LLaVA-NeXT.

mod features;
mod forward;

pub use features::FeatureSelect;
pub(crate) use features::feature_layers;
pub(crate) use forward::{LlavaVision, LlavaVisionConfig};
