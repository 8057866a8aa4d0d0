//! Saved tensors, and activation checkpointing (`torch/utils/checkpoint.py`): the non-reentrant kind, and below it the reentrant
//! one (`CheckpointFunction`, `use_reentrant=True`).
//!
//! A reentrant checkpoint's block is one node of the graph. Its first forward makes no graph; backward runs the block again, as a
//! whole, and then a backward of its own through the graph of that run, within the node.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::core::Tape;
use super::tensor::Tensor;
use super::why::Why;
use super::work::HostOp;
use crate::dtype::DType;

/// Saved tensor of a node: kept, or promised to be recomputed.
pub(super) enum Saved {
    Kept(Tensor),
    Promised(Promise),
}

/// Promise of a tensor that a recomputation makes.
pub(super) struct Promise {
    frame: Rc<Frame>,
    index: usize,
}

impl Drop for Promise {
    /// A node that is gone needs its tensor no more, so a recomputation does not keep it.
    fn drop(&mut self) {
        let mut recomputed = self.frame.recomputed.borrow_mut();
        let taken = match recomputed.as_mut() {
            Some(list) => list.get_mut(self.index).and_then(Option::take),
            None => {
                self.frame.abandoned.borrow_mut().push(self.index);
                None
            }
        };
        drop(recomputed);
        drop(taken);
    }
}

/// Handling of tensors that are saved while a checkpointed block runs.
#[derive(Clone)]
pub(super) enum Hook {
    /// First forward: note only a promise.
    Promise(Rc<Frame>),
    /// Recomputation within backward: put the tensor into the frame, where the promise finds it.
    Recompute(Rc<Frame>),
}

/// A block of a model, from hidden states to hidden states.
pub type BlockFn = dyn Fn(&Tape, Tensor) -> Tensor;

/// One run of a checkpointed block.
pub(super) struct Frame {
    run: Box<dyn Fn(&Tape)>,
    autocast: Option<DType>,
    scope: super::log::ScopeId,
    promised: Cell<usize>,
    /// Promises that were dropped before the recomputation.
    abandoned: RefCell<Vec<usize>>,
    recomputed: RefCell<Option<Vec<Option<Tensor>>>>,
}

impl Tape {
    /// Runs `block` on `input` and keeps only what `block` captured and `input`; backward runs it again.
    ///
    /// The block gets the input as a new tensor, which belongs to the recomputed graph.
    pub fn checkpoint(&self, input: Tensor, block: Rc<BlockFn>) -> Tensor {
        if !self.0.grad_enabled.get() {
            return block(self, input);
        }
        let frame = {
            let run = self.rerun(&input, block.clone());
            Rc::new(Frame {
                run,
                autocast: self.autocast_dtype(),
                scope: self.scope_id(),
                promised: Cell::new(0),
                abandoned: RefCell::default(),
                recomputed: RefCell::new(None),
            })
        };
        self.0.hooks.borrow_mut().push(Hook::Promise(frame));
        let out = block(self, input);
        self.0.hooks.borrow_mut().pop();
        out
    }

    /// What runs `block` again. Within another checkpoint its input is saved as that saves everything (`_NoopSaveInputs`), so
    /// that running it again runs first the block around it, as far as that input.
    fn rerun(&self, input: &Tensor, block: Rc<BlockFn>) -> Box<dyn Fn(&Self)> {
        let is_nested = self.0.hooks.borrow().last().is_some();
        if !is_nested {
            let input = input.clone();
            input.storage().keep_for_backward(Why::BlockInput);
            return Box::new(move |tape| drop(block(tape, input.clone())));
        }
        let (saved, trains) = (self.pack(input, "_NoopSaveInputsBackward"), input.requires_grad());
        Box::new(move |tape| {
            let mut input = tape.unpack(&saved);
            if trains {
                input = tape.require_grad(&input);
            }
            drop(block(tape, input));
        })
    }

    /// Runs `f` as the first forward of a checkpointed block whose backward never runs.
    pub(super) fn promising<R>(&self, f: impl FnOnce() -> R) -> R {
        let frame = Frame {
            run: Box::new(|_| ()),
            autocast: None,
            scope: self.scope_id(),
            promised: Cell::new(0),
            abandoned: RefCell::default(),
            recomputed: RefCell::new(None),
        };
        self.0.hooks.borrow_mut().push(Hook::Promise(Rc::new(frame)));
        let result = f();
        self.0.hooks.borrow_mut().pop();
        result
    }

    /// Returns true if saved tensors are kept, rather than promised to be recomputed.
    pub(super) fn keeps_saved(&self) -> bool {
        !matches!(self.0.hooks.borrow().last(), Some(Hook::Promise(_)))
    }

    pub(super) fn pack(&self, t: &Tensor, node: &'static str) -> Saved {
        let hook = self.0.hooks.borrow().last().cloned();
        match hook {
            None => {
                t.storage().keep_for_backward(Why::NeededBy(node));
                Saved::Kept(t.detach())
            }
            Some(Hook::Promise(frame)) => {
                self.host_op(HostOp::Pack);
                let index = frame.promised.get();
                frame.promised.set(index + 1);
                Saved::Promised(Promise { frame, index })
            }
            Some(Hook::Recompute(frame)) => {
                // `x.detach() if x.requires_grad else x`: another tensor keeps the memory that a parameter has now.
                let kept = match t.requires_grad() {
                    true => t.detach_owner(),
                    false => t.detach(),
                };
                t.storage().keep_for_backward(Why::NeededBy(node));
                self.put(&frame, kept.clone());
                Saved::Kept(kept)
            }
        }
    }

    /// Stores a recomputed tensor; after the last one the recomputation stops (`early_stop`).
    fn put(&self, frame: &Rc<Frame>, t: Tensor) {
        let mut recomputed = frame.recomputed.borrow_mut();
        if let Some(list) = recomputed.as_mut().filter(|l| l.len() < frame.promised.get()) {
            let is_wanted = !frame.abandoned.borrow().contains(&list.len());
            list.push(is_wanted.then_some(t));
            // PyTorch raises `_StopRecomputationError` here. What the block computes after its last saved tensor, such
            // as its output, is then not made a second time.
            if list.len() == frame.promised.get() {
                self.0.stopped.set(true);
            }
        }
    }

    pub(super) fn unpack(&self, saved: &Saved) -> Tensor {
        match saved {
            Saved::Kept(t) => t.clone(),
            Saved::Promised(Promise { frame, index }) => {
                self.host_op(HostOp::Unpack);
                if frame.recomputed.borrow().is_none() {
                    self.recompute(frame);
                }
                let taken = frame
                    .recomputed
                    .borrow_mut()
                    .as_mut()
                    .and_then(|list| list.get_mut(*index)?.take());
                taken.expect("a promised tensor is recomputed once and used once")
            }
        }
    }

    fn recompute(&self, frame: &Rc<Frame>) {
        *frame.recomputed.borrow_mut() = Some(Vec::with_capacity(frame.promised.get()));
        let scope = self.set_scope(frame.scope);
        self.0.hooks.borrow_mut().push(Hook::Recompute(frame.clone()));
        self.with_grad(true, || self.autocast(frame.autocast, || (frame.run)(self)));
        self.0.hooks.borrow_mut().pop();
        self.0.stopped.set(false);
        self.set_scope(scope);
    }
}

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
            if let Some(watcher) = t.watcher() {
                watcher.nests(t, &inputs);
            }
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
