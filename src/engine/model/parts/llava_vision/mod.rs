//! Vision half of LLaVA's families: a tower, some of its hidden states, and a projector.

mod features;
mod forward;
mod tower;
mod tower_config;

pub(crate) use features::FeatureLayers;
pub use features::FeatureSelect;
pub(crate) use forward::{LlavaVision, LlavaVisionConfig};
pub(crate) use tower::FeatureTower;
pub use tower_config::TowerConfig;
