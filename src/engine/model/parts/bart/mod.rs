//! Decoders like BART's without an encoder: BioGPT and XGLM.

mod attention;
mod config;
mod stack;

pub(crate) use config::{BartConfig, BartForm};
