//! The graph that forward records and backward runs (`torch/csrc/autograd/engine.cpp`).

mod engine;

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::rc::Rc;

use smallvec::SmallVec;

use super::checkpoint::{BlockOfFn, Saved};
use super::core::Tape;
use super::dims::{self, Dims};
use super::kind::Kind;
use super::log::ScopeId;
use super::tensor::{Leaf, Tensor};
use super::why::Why;
use super::work::{Class, HostOp, bytes_of};
use crate::dtype::DType;

/// Gradients, one for each input of an operation; `None` for inputs that need none.
pub type Grads = SmallVec<[Option<Tensor>; 4]>;

/// Destination of a gradient: an input slot of a node.
#[derive(Clone)]
pub struct Edge {
    pub(super) node: Rc<Node>,
    pub(super) slot: usize,
}

/// Arguments of an operation's backward.
pub struct Backward<'a> {
    /// Gradients of the operation's outputs.
    pub grads: SmallVec<[Option<Tensor>; 2]>,
    /// Tensors that forward saved, in the order in which it saved them.
    pub saved: SmallVec<[Tensor; 6]>,
    wanted: &'a [Option<Edge>],
}

impl Backward<'_> {
    /// Gradient of the only output.
    ///
    /// # Panics
    /// When there is none: the engine runs no node without one.
    pub fn grad(&self) -> &Tensor {
        self.grads[0].as_ref().expect("a node runs with a gradient")
    }

    /// Returns true if input `i` needs a gradient.
    pub fn wants(&self, i: usize) -> bool {
        self.wanted[i].is_some()
    }

    /// Computes `f` if input `i` needs a gradient.
    pub fn want(&self, i: usize, f: impl FnOnce() -> Tensor) -> Option<Tensor> {
        self.wants(i).then(f)
    }
}

type Apply = Box<dyn FnOnce(&Tape, &mut Backward<'_>) -> Grads>;

enum Action {
    Apply(Option<Apply>),
    Accumulate(Tensor),
}

/// One recorded operation.
pub struct Node {
    sequence: u64,
    scope: ScopeId,
    next: RefCell<SmallVec<[Option<Edge>; 3]>>,
    /// Shape and dtype of each output, which its gradient must match.
    outputs: SmallVec<[(Dims, DType); 1]>,
    saved: RefCell<SmallVec<[Saved; 4]>>,
    action: RefCell<Action>,
    /// What a function of Python keeps as attributes of its context, as long as the node lives: backward releases saved
    /// tensors alone.
    _context: Option<Rc<BlockOfFn>>,
    // State of the backward in progress.
    task: Cell<u32>,
    waits_for: Cell<u32>,
    buffer: RefCell<SmallVec<[Option<Tensor>; 1]>>,
}

impl Node {
    /// Edge to the node that stores a leaf's gradient; there is one per leaf while a graph needs it.
    pub(super) fn accumulate(leaf: &Rc<Leaf>, tensor: &Tensor) -> Edge {
        if let Some(node) = leaf.node.borrow().upgrade() {
            return Edge { node, slot: 0 };
        }
        let node = Rc::new(Self {
            sequence: u64::MAX,
            scope: 0,
            next: RefCell::default(),
            outputs: SmallVec::from_slice(&[(*tensor.shape(), tensor.dtype())]),
            saved: RefCell::default(),
            action: RefCell::new(Action::Accumulate(tensor.clone())),
            _context: None,
            task: Cell::new(0),
            waits_for: Cell::new(0),
            buffer: RefCell::default(),
        });
        *leaf.node.borrow_mut() = Rc::downgrade(&node);
        Edge { node, slot: 0 }
    }
}

impl Drop for Node {
    /// Chains of nodes are as long as the step, so they are dropped in a loop, not by recursion.
    fn drop(&mut self) {
        let mut chain: Vec<Rc<Node>> = self.next.get_mut().drain(..).flatten().map(|e| e.node).collect();
        while let Some(mut node) = chain.pop() {
            // Empties the node's own list once nobody else holds it, so that dropping it does not recurse.
            if let Some(node) = Rc::get_mut(&mut node) {
                chain.extend(node.next.get_mut().drain(..).flatten().map(|e| e.node));
            }
        }
    }
}

/// An operation being recorded: inputs first, then the tensors it saves, then its outputs.
pub struct Recording {
    active: Option<Active>,
}

struct Active {
    name: &'static str,
    next: SmallVec<[Option<Edge>; 3]>,
    saved: SmallVec<[Saved; 4]>,
    context: Option<Rc<BlockOfFn>>,
}

impl Recording {
    /// Returns true if backward will reach this operation.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Returns true if backward will compute a gradient of input `i`.
    pub fn wants(&self, i: usize) -> bool {
        self.active.as_ref().is_some_and(|a| a.next[i].is_some())
    }

    /// Saves a tensor for backward. Inputs are saved before the operation's outputs are made, as in PyTorch's generated
    /// code: the order decides the point at which a recomputation stops.
    pub fn save(&mut self, tape: &Tape, t: &Tensor) {
        if let Some(active) = &mut self.active {
            let saved = tape.pack(t, active.name);
            active.saved.push(saved);
        }
    }

    /// Keeps a block, with all that it captured, as long as the node lives (`ctx.run_function`).
    pub(super) fn keep(&mut self, block: Rc<BlockOfFn>) {
        if let Some(active) = &mut self.active {
            active.context = Some(block);
        }
    }

    /// Finishes recording an operation with one output.
    pub fn finish(
        self,
        tape: &Tape,
        out: Tensor,
        apply: impl FnOnce(&Tape, &mut Backward<'_>) -> Grads + 'static,
    ) -> Tensor {
        let apply = self.is_active().then(|| Box::new(apply) as Apply);
        self.end(tape, out, apply)
    }

    /// [`Self::finish`] without generics, so that it is compiled once.
    #[inline(never)]
    fn end(self, tape: &Tape, out: Tensor, apply: Option<Apply>) -> Tensor {
        let Some((active, apply)) = self.active.zip(apply) else {
            return out;
        };
        let node = active.node(tape, SmallVec::from_slice(&[(*out.shape(), out.dtype())]), apply);
        with_edge(out, node, 0)
    }

    /// Finishes recording an operation with several outputs.
    pub fn finish_many(
        self,
        tape: &Tape,
        outs: Vec<Tensor>,
        apply: impl FnOnce(&Tape, &mut Backward<'_>) -> Grads + 'static,
    ) -> Vec<Tensor> {
        let Some(active) = self.active else { return outs };
        let meta = outs.iter().map(|o| (*o.shape(), o.dtype())).collect();
        let node = active.node(tape, meta, Box::new(apply));
        outs.into_iter()
            .enumerate()
            .map(|(slot, out)| with_edge(out, node.clone(), slot))
            .collect()
    }
}

impl Active {
    fn node(self, tape: &Tape, outputs: SmallVec<[(Dims, DType); 1]>, apply: Apply) -> Rc<Node> {
        let sequence = tape.0.sequence.get();
        tape.0.sequence.set(sequence + 1);
        Rc::new(Node {
            sequence,
            scope: tape.scope_id(),
            next: RefCell::new(self.next),
            outputs,
            saved: RefCell::new(self.saved),
            action: RefCell::new(Action::Apply(Some(apply))),
            _context: self.context,
            task: Cell::new(0),
            waits_for: Cell::new(0),
            buffer: RefCell::default(),
        })
    }
}

fn with_edge(mut out: Tensor, node: Rc<Node>, slot: usize) -> Tensor {
    let edge = Some(Edge { node, slot });
    if let Some(own) = Rc::get_mut(&mut out.0) {
        own.edge = edge;
        return out;
    }
    let shared = &out.0;
    Tensor::from_parts(shared.storage.clone(), shared.shape, shared.strides, shared.dtype, edge)
}

impl Tape {
    /// Starts recording an operation on `inputs`; inactive if none of them requires grad or grad mode is off.
    pub fn record(&self, name: &'static str, inputs: &[&Tensor]) -> Recording {
        if let Some(watcher) = self.watcher() {
            watcher.begins(self);
            let is_managed = |x: &&&Tensor| x.storage().is_managed() && x.numel() > 0;
            inputs.iter().filter(is_managed).for_each(|x| watcher.uses(self, x));
        }
        let on = self.0.grad_enabled.get() && inputs.iter().any(|t| t.requires_grad());
        if on {
            self.host_op(HostOp::Record);
        }
        let active = on.then(|| Active {
            name,
            next: inputs.iter().map(|t| t.edge()).collect(),
            saved: SmallVec::new(),
            context: None,
        });
        Recording { active }
    }
}
