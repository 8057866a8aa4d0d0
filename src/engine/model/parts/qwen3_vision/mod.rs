//! Vision tower of Qwen3-VL and Qwen3.5.

mod config;
mod tower;

pub use config::Qwen3VlVisionConfig;
pub(crate) use tower::Qwen3Vision;
