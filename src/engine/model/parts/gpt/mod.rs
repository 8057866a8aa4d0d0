//! Decoders like GPT-2's: layer norms before attention and an MLP of its own names, positions that are learned or
//! rotated in pairs.

mod attention;
mod config;
mod pairs;
mod stack;
mod window;

pub(crate) use config::{AttentionForm, Dropouts, GptConfig, GptForm};
