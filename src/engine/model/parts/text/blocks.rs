//! Runs the blocks of a stack.

use std::cell::Cell;
use std::rc::Rc;

use crate::model::forward::Run;
use crate::nn::Numbered;
use crate::tape::{Tape, Tensor};

/// Forward of a block, which gets what all blocks of a forward share.
type BlockForward<B, S> = fn(&B, &Tape, &S, Tensor) -> Tensor;

/// Runs blocks one after the other, [batch, seq, hidden] each, checkpointed if the run asks for it. `forward` gets what
/// all blocks of a forward share. The caller of a block holds its input until the block returns.
pub(crate) fn run_blocks<B: 'static, S: 'static>(
    t: &Tape,
    run: &Run,
    blocks: (&[Numbered<B>], &Rc<S>),
    h: Tensor,
    forward: BlockForward<B, S>,
) -> Tensor {
    run_blocks_seen(t, run, blocks, h, (forward, |_| {}))
}

/// Runs blocks as [`run_blocks`] does; `see` gets the output of each.
pub(crate) fn run_blocks_seen<B: 'static, S: 'static>(
    t: &Tape,
    run: &Run,
    (blocks, shared): (&[Numbered<B>], &Rc<S>),
    h: Tensor,
    forward: (BlockForward<B, S>, impl FnMut(&Tensor)),
) -> Tensor {
    let blocks = blocks.iter().map(|block| (block.clone(), shared.clone()));
    run_each_block(t, run, blocks, h, forward)
}

/// Runs blocks as [`run_blocks`] does, where each comes with what it gets.
pub(crate) fn run_each_block<B: 'static, S: 'static>(
    t: &Tape,
    run: &Run,
    blocks: impl Iterator<Item = (Numbered<B>, Rc<S>)>,
    mut h: Tensor,
    (forward, mut see): (BlockForward<B, S>, impl FnMut(&Tensor)),
) -> Tensor {
    for (block, shared) in blocks {
        let called = block.clone();
        let forward = move |t: &Tape, x: Tensor| forward(&called, t, &shared, x);
        h = run.block(t, &block, h.clone(), forward);
        see(&h);
    }
    h
}

/// Output of a block, and its attention weights.
pub(crate) type Outputs = (Tensor, Option<Tensor>);

/// What a block returns beside its output in its first forward; a recomputed one has nobody to return it to.
#[derive(Default)]
pub(crate) struct Returned {
    is_over: Cell<bool>,
    tensor: Cell<Option<Tensor>>,
}

impl Returned {
    /// Returns a tensor, or none, from the block.
    pub fn set(&self, tensor: Option<Tensor>) {
        if !self.is_over.get() {
            self.tensor.set(tensor);
        }
    }

    /// Takes what the block returned, once its first forward is over.
    pub fn take(&self) -> Option<Tensor> {
        self.is_over.set(true);
        self.tensor.take()
    }
}

/// Runs blocks as [`run_blocks`] does, where each also returns its attention weights: the caller's variable for what a
/// block returned holds them until the next block returns, and those of the last block until it returns itself.
pub(crate) fn run_blocks_with_weights<B: 'static, S: 'static>(
    t: &Tape,
    run: &Run,
    (blocks, shared): (&[Numbered<B>], &Rc<S>),
    mut h: Tensor,
    forward: fn(&B, &Tape, &S, Tensor) -> Outputs,
) -> Outputs {
    let mut held = None;
    for block in blocks {
        let returned = Rc::new(Returned::default());
        let (called, shared, slot) = (block.clone(), shared.clone(), returned.clone());
        let forward = move |t: &Tape, x: Tensor| {
            let (out, weights) = forward(&called, t, &shared, x);
            slot.set(weights);
            out
        };
        let out = run.block(t, block, h.clone(), forward);
        drop(std::mem::replace(&mut held, returned.take()));
        h = out;
    }
    (h, held)
}
