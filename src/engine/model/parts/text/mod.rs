//! Language models without images whose blocks are not like Llama's: what their families and forwards share.

mod blocks;
mod family;
mod lm;
mod mlp;

pub(crate) use blocks::run_blocks;
pub(crate) use family::{TextFamily, TextSupport};
pub(crate) use lm::{HeadForm, Stack, TextLm};
pub(crate) use mlp::{MlpForm, PlainMlp};
