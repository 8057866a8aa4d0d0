//! Decoders with gated DeltaNet in most layers and gated attention in the others (Qwen3.5).

mod attention;
mod config;
mod delta_net;
mod layer;
mod stack;

pub(crate) use config::DeltaDecoderConfig;
pub(crate) use stack::DeltaDecoder;
