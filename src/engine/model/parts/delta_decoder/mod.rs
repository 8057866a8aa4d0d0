//! Decoders with gated DeltaNet in most layers and gated attention in the others (Qwen3.5, Qwen3-Next).

mod attention;
mod config;
mod delta_net;
mod form;
mod layer;
mod projections;
mod stack;

pub(crate) use config::DeltaDecoderConfig;
pub(crate) use form::{QWEN3_5, QWEN3_5_MOE, QWEN3_NEXT};
pub(crate) use stack::DeltaDecoder;
