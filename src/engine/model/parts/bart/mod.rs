//! Blocks of BART's decoder and of those like it.

mod attention;
mod block;

pub(crate) use attention::BlockContext;
pub(crate) use block::{AttentionForm, BlockConfig, Layer};
