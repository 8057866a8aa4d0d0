//! Mamba 2's mixer, alone (`families/mamba`) and in layers beside attention (`families/mamba_hybrid`).

mod config;
mod conv;
mod mixer;
mod scan;

pub use config::{ConvSizes, Gating, Mamba2Config, Mamba2Sizes};
pub(crate) use conv::{Conv, masked};
pub(crate) use mixer::Mixer2;
