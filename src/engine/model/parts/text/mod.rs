//! Language models without images whose blocks are not like Llama's: what their families and forwards share.

mod blocks;
mod family;
mod lm;
mod mlp;

pub(crate) use blocks::{Outputs, Returned, run_blocks, run_blocks_seen, run_blocks_with_weights, run_each_block};
pub(crate) use family::{TextFamily, TextSupport};
pub(crate) use lm::{Head, HeadForm, Stack, TextLm};
pub(crate) use mlp::{MlpForm, PlainMlp};
