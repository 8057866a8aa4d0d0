//! Blocks of BART's decoder and of those like it.

mod attention;
mod block;

pub(crate) use attention::BlockContext;
pub(crate) use block::{AttentionForm, BlockConfig, Layer};

use std::rc::Rc;

use crate::model::forward::Run;
use crate::nn::Numbered;
use crate::tape::{Tape, Tensor};

/// Runs blocks that also attend to what an encoder made, [batch, positions, hidden], one after the other.
pub(crate) fn run_blocks_across(
    t: &Tape,
    run: &Run,
    (blocks, shared): (&[Numbered<Layer>], &Rc<BlockContext>),
    mut h: Tensor,
    context: &Tensor,
) -> Tensor {
    for block in blocks {
        let (called, shared) = (block.clone(), shared.clone());
        let forward = move |t: &Tape, x: Tensor, context: &Tensor| called.forward_across(t, &shared, x, context);
        // The caller of a block holds its input until the block returns.
        h = run.block_with(t, block, (h.clone(), context.clone()), forward);
    }
    h
}
