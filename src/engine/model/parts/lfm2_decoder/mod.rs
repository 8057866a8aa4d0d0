//! LFM2: short convolutions in most layers and attention in the others.

mod config;
mod experts;
mod layer;
mod short_conv;
mod stack;

pub(crate) use config::Lfm2Config;
pub(crate) use stack::Lfm2Decoder;
