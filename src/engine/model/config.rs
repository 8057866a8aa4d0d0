//! Typed configurations, one file per family, read from Hugging Face `config.json` values.
//!
//! Absent keys take the defaults of transformers 5.17's configuration classes, save that a whole
//! `config.json` must state its own sizes: a default there would silently be another model.

mod activation;
mod clip_vision;
mod decoder;
mod gpt2;
mod limits;
mod llava;
mod rope;
pub(crate) mod section;

pub use activation::Activation;
pub use clip_vision::ClipVisionConfig;
pub use decoder::{DecoderConfig, DecoderFamily};
pub use gpt2::Gpt2Config;
pub use llava::{FeatureSelect, LlavaConfig};
pub use rope::{Rope, RopeKind};
