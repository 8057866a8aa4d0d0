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

impl Tape {
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
        let out = self.no_grad(|| block(self, &inputs));
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
            t.0.reenters.set(true);
            let out = t.with_grad(true, || t.autocast(autocast, || block(t, &inputs)));
            t.0.reenters.set(false);
            t.nested_backward(&out, backward.grad().clone());
            if let Some(watcher) = t.watcher() {
                watcher.unnests(t);
            }
            inputs.iter().map(Tensor::grad).collect()
        })
    }
}
