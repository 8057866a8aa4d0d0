//! Runs the blocks of a stack.

use std::rc::Rc;

use crate::model::forward::Run;
use crate::tape::{Tape, Tensor};

/// Runs blocks one after the other, [batch, seq, hidden] each, checkpointed if the run asks for it. `forward` gets what
/// all blocks of a forward share. The caller of a block holds its input until the block returns.
pub(crate) fn run_blocks<B: 'static, S: 'static>(
    t: &Tape,
    run: &Run,
    name: &'static str,
    (blocks, shared): (&[Rc<B>], &Rc<S>),
    mut h: Tensor,
    forward: fn(&B, &Tape, &S, Tensor) -> Tensor,
) -> Tensor {
    for (i, block) in blocks.iter().enumerate() {
        let (block, shared) = (block.clone(), shared.clone());
        let forward = move |t: &Tape, x: Tensor| forward(&block, t, &shared, x);
        h = t.layer(name, i, || {
            if run.checkpoints(t) {
                t.checkpoint(h, Rc::new(forward))
            } else {
                let input = h.clone();
                forward(t, input)
            }
        });
    }
    h
}
