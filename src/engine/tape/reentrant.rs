//! Reentrant activation checkpointing (`CheckpointFunction` of `torch/utils/checkpoint.py`, `use_reentrant=True`).
//!
//! The block is one node of the graph. Its first forward makes no graph; backward runs the block again, as a whole, and
//! then a backward of its own through the graph of that run, within the node.

use std::rc::Rc;

use super::core::Tape;
use super::tensor::Tensor;
use super::why::Why;

/// A block of a model, from the tensors that it gets by position to hidden states.
pub type BlockOfFn = dyn Fn(&Tape, &[Tensor]) -> Tensor;

/// Run of a reentrant checkpoint's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReentrantRun {
    /// In forward, without a graph.
    First,
    /// In backward, with a graph that backward goes through next.
    Again,
}

impl Tape {
    fn in_reentrant_run<R>(&self, run: ReentrantRun, f: impl FnOnce() -> R) -> R {
        let before = self.0.reentrant_run.replace(Some(run));
        let result = f();
        self.0.reentrant_run.set(before);
        result
    }

    /// Runs `block` on `inputs` without a graph, and keeps only what `block` captured and `inputs`, if one of them requires a
    /// gradient. Otherwise backward does not come to the block, whatever is trained in it: PyTorch warns that "None of the
    /// inputs have requires_grad=True".
    pub fn checkpoint_reentrant(&self, inputs: Vec<Tensor>, block: Rc<BlockOfFn>) -> Tensor {
        if !self.is_grad_enabled() {
            return block(self, &inputs);
        }
        let mut node = self.record("CheckpointFunctionBackward", &inputs.iter().collect::<Vec<_>>());
        for input in &inputs {
            if node.is_active() {
                input.storage().keep_for_backward(Why::BlockInput);
            }
            node.save(self, input);
        }
        node.keep(block.clone());
        let out = self.in_reentrant_run(ReentrantRun::First, || self.no_grad(|| block(self, &inputs)));
        drop(inputs);
        let autocast = self.autocast_dtype();
        node.finish(self, out, move |t, backward| {
            if let Some(watcher) = t.watcher() {
                watcher.nests(t);
            }
            // `detach_variable`: the recomputed graph ends at the inputs.
            let saved = backward.saved.iter().enumerate();
            let inputs: Vec<Tensor> = saved
                .map(|(i, x)| {
                    if backward.wants(i) {
                        t.require_grad(x)
                    } else {
                        x.detach()
                    }
                })
                .collect();
            let again = || t.with_grad(true, || t.autocast(autocast, || block(t, &inputs)));
            let out = t.in_reentrant_run(ReentrantRun::Again, again);
            t.nested_backward(&out, backward.grad().clone());
            if let Some(watcher) = t.watcher() {
                watcher.unnests(t);
            }
            inputs.iter().map(Tensor::grad).collect()
        })
    }
}
