//! Thinkers of Qwen's Omni models: a vision tower, an audio encoder that no simulated step runs, a language model.

mod audio;
mod positions;
mod thinker;

pub use audio::AudioConfig;
pub(crate) use positions::PositionIds;
pub(crate) use thinker::{Thinker, ThinkerParts, check_tokens, sections};
