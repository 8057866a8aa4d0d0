//! The autograd engine: runs the graph backward, node by node, in the order of PyTorch's.

use super::super::failure::Failure;
use super::super::hooks::ModuleWatcher;
use super::*;

/// Place of a backward among those that run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Goes through the graph of the step, block after block.
    Outermost,
    /// Goes through the graph of one block, within the block's node: the deduplication of layers, which knows the nodes of the
    /// step alone, is not told of it.
    Nested,
}

impl Tape {
    /// `loss.backward()`.
    ///
    /// # Panics
    /// When the loss does not require grad.
    pub fn backward(&self, loss: &Tensor) {
        self.host_op(HostOp::Backward);
        let seed = self.empty_like(loss, loss.dtype(), "ones_like");
        self.backward_from(loss, seed);
    }

    /// Runs backward from a tensor with a given gradient (`torch.autograd.backward(output, grad_tensors=grad)`).
    ///
    /// # Panics
    /// Panics as [`Tape::backward`] does.
    pub fn backward_from(&self, output: &Tensor, grad: Tensor) {
        let root = output.edge().expect("backward of a loss that nothing trained led to");
        let scope = self.set_scope(0);
        self.0.in_backward.set(true);
        self.with_grad(false, || self.run_graph(root, grad, Depth::Outermost));
        self.0.in_backward.set(false);
        self.set_scope(scope);
    }

    /// Runs the backward of a graph that a node of another made, within that node. PyTorch's thread takes all nodes of the
    /// inner graph before it goes on with the outer one (`NodeTask::getReentrantDepth`).
    ///
    /// # Panics
    /// When the output does not require grad.
    pub(in crate::tape) fn nested_backward(&self, output: &Tensor, grad: Tensor) {
        let root = output.edge().expect("a recomputed block has a graph");
        let scope = self.set_scope(0);
        self.with_grad(false, || self.run_graph(root, grad, Depth::Nested));
        self.set_scope(scope);
    }

    /// Counts dependencies of a graph within that of backward `outer`, whose nodes it may lead to: leaves, whose state is put
    /// aside until it has run, or what made an argument that a block did not get by position, which can run once. `None` if that is
    /// to run twice, which PyTorch refuses.
    fn count_nested(&self, root: &Rc<Node>, [outer, task]: [u32; 2]) -> Option<Vec<Aside>> {
        let mut aside = Vec::new();
        let mut runs_twice = false;
        let waits = |node: &Node| node.task.get() <= outer && node.task.get() > 0 && node.waits_for.get() > 0;
        count_dependencies(root, task, |node| {
            let is_leaf = matches!(*node.action.borrow(), Action::Accumulate(_));
            let has_run = matches!(*node.action.borrow(), Action::Apply(None));
            if waits(node) {
                let buffer = std::mem::take(&mut *node.buffer.borrow_mut());
                aside.push(Aside {
                    node: node.clone(),
                    task: node.task.get(),
                    waits_for: node.waits_for.get(),
                    buffer,
                });
            }
            runs_twice |= has_run || (!is_leaf && waits(node));
        });
        if runs_twice {
            restore(aside);
            return None;
        }
        Some(aside)
    }

    fn run_graph(&self, root: Edge, seed: Tensor, depth: Depth) {
        let outer = self.0.graph_task.get();
        let task = outer + 1;
        self.0.graph_task.set(task);
        let aside = match depth {
            Depth::Outermost => {
                count_dependencies(&root.node, task, |_| {});
                Some(Vec::new())
            }
            Depth::Nested => self.count_nested(&root.node, [outer, task]),
        };
        let Some(aside) = aside else {
            return self.fail(|| Failure::BackwardTwice {
                module: self.path_of_scope(root.node.scope),
            });
        };
        // The caller of backward holds the seed until backward returns.
        receive(self, &root, seed.clone());
        // Of the nodes that are ready PyTorch runs the one that forward made last (`ReadyQueue`, `sequence_nr`). Where
        // branches meet, such as the residual stream, another order would free saved tensors later and change the peak.
        let mut ready = BinaryHeap::new();
        ready.push(Ready(root.node));
        let mut held = Held::default();
        loop {
            self.pass_ends(&mut ready, &mut held);
            let Some(Ready(node)) = ready.pop() else { break };
            self.send_new_events();
            if depth == Depth::Outermost {
                self.backward_reaches(Some(node.sequence));
            }
            let outputs = self.evaluate(&node);
            let next = std::mem::take(&mut *node.next.borrow_mut());
            for (output, edge) in outputs.into_iter().zip(next.iter()) {
                let Some(edge) = edge else { continue };
                self.send(edge, output, &mut ready, &mut held);
            }
            *node.next.borrow_mut() = next;
        }
        if depth == Depth::Outermost {
            self.backward_reaches(None);
        }
        drop(seed);
        restore(aside);
    }

    /// Passes the ends of modules that lie before the next node, whose functions run like nodes of the graph.
    fn pass_ends(&self, ready: &mut BinaryHeap<Ready>, held: &mut Held) {
        let Some(watcher) = self.watcher() else { return };
        while let Some(passed) = watcher.reaches(self, ready.peek().map(|Ready(node)| node.sequence)) {
            let (out, kept) = std::mem::take(&mut held.0)
                .into_iter()
                .partition(|(at, _, _)| *at == passed);
            held.0 = kept;
            let out: Vec<(usize, Edge, Tensor)> = out;
            for (_, edge, grad) in out {
                self.send(&edge, Some(grad), ready, held);
            }
        }
    }

    /// Sends a gradient to a node, or to the beginning of the module that it leaves.
    fn send(&self, edge: &Edge, grad: Option<Tensor>, ready: &mut BinaryHeap<Ready>, held: &mut Held) {
        if let Some(grad) = grad {
            let leaves_by = |watcher: Rc<dyn ModuleWatcher>| {
                let place = match &*edge.node.action.borrow() {
                    Action::Accumulate(leaf) => watcher.place_of_leaf(leaf).unwrap_or(u64::MAX),
                    Action::Apply(_) => edge.node.sequence,
                };
                watcher.leaves_by(place)
            };
            if let Some(module) = self.watcher().and_then(leaves_by) {
                return held.put(self, module, edge, grad);
            }
            receive(self, edge, grad);
        }
        let left = edge.node.waits_for.get() - 1;
        edge.node.waits_for.set(left);
        if left == 0 {
            ready.push(Ready(edge.node.clone()));
        }
    }

    /// Runs one node, then releases its gradients, then its saved tensors.
    fn evaluate(&self, node: &Rc<Node>) -> Grads {
        let grads: SmallVec<[Option<Tensor>; 2]> = node.buffer.borrow_mut().drain(..).collect();
        if grads.iter().all(Option::is_none) {
            node.saved.borrow_mut().clear();
            return node.next.borrow().iter().map(|_| None).collect();
        }
        let apply = match &mut *node.action.borrow_mut() {
            Action::Accumulate(leaf) => {
                self.host_op(HostOp::Accumulate(leaf.storage().id()));
                self.accumulate_grad(leaf, grads);
                self.run_gradient_hook(leaf);
                return Grads::new();
            }
            Action::Apply(apply) => apply.take(),
        };
        self.set_scope(node.scope);
        self.host_op(HostOp::Node);
        let saved = node.saved.borrow().iter().map(|s| self.unpack(s)).collect();
        let next = std::mem::take(&mut *node.next.borrow_mut());
        let mut backward = Backward {
            grads,
            saved,
            wanted: &next,
        };
        let mut outputs = match apply {
            Some(apply) => apply(self, &mut backward),
            None => next.iter().map(|_| None).collect(),
        };
        // Recomputed tensors are freed when the operation's own code returns; saved tensors still belong to the node.
        backward.saved.clear();
        for (output, edge) in outputs.iter_mut().zip(next.iter()) {
            match edge {
                Some(edge) => *output = output.take().map(|g| self.validate(g, edge)),
                None => *output = None,
            }
        }
        // The incoming gradients live until the outgoing ones have their final shape and type.
        drop(backward);
        *node.next.borrow_mut() = next;
        node.saved.borrow_mut().clear();
        outputs
    }

    /// Brings a gradient to the shape and dtype of its tensor (`validate_outputs`).
    fn validate(&self, grad: Tensor, edge: &Edge) -> Tensor {
        let (shape, dtype) = edge.node.outputs[edge.slot];
        let grad = if *grad.shape() == shape {
            grad
        } else {
            let summed = self.sum_to(&grad, &shape);
            drop(grad);
            summed
        };
        if grad.dtype() == dtype {
            grad
        } else {
            self.to_dtype_raw(&grad, dtype)
        }
    }

    /// `AccumulateGrad`: takes over the first gradient if nobody else holds it and its layout is the parameter's; adds
    /// the others in place.
    fn accumulate_grad(&self, leaf: &Tensor, mut grads: SmallVec<[Option<Tensor>; 2]>) {
        let (Some(new), Some(state)) = (grads[0].take(), leaf.0.leaf.as_ref()) else {
            return;
        };
        let mut slot = state.grad.borrow_mut();
        if let Some(held) = slot.as_ref() {
            self.add_in_place(held, &new);
            return;
        }
        let obeys = if leaf.is_dense() {
            same_layout(&new, leaf)
        } else {
            new.is_contiguous()
        };
        // As in `torch/csrc/autograd/functions/accumulate_grad.h`: whoever else holds the tensor would see later
        // additions, and optimizers expect the layout of the parameter. Otherwise a copy is made beside the original.
        let is_taken_over = new.handles() == 1 && obeys;
        if self.accumulates_gradient(leaf, if is_taken_over { &new } else { leaf }) {
            // Has the layout of the parameter.
            self.add_in_place(leaf, &new);
            return;
        }
        let grad = if is_taken_over {
            new.detach()
        } else {
            self.empty_strided(*leaf.shape(), *leaf.strides(), new.dtype(), "clone of gradient")
        };
        grad.storage().classify(Kind::Gradient, Why::Gradient);
        *slot = Some(grad);
    }
}

impl Tape {
    /// Returns true if the gradient of a parameter that GPUs share is a part of the whole parameter's gradient in
    /// memory.
    fn is_part_of_whole(&self, edge: &Edge, grad: &Tensor) -> bool {
        self.group() > 1
            && matches!(*edge.node.action.borrow(), Action::Accumulate(_))
            && self.bytes_of_storage(grad) > grad.numel() * grad.dtype().width()
    }

    /// Adds `x` to `held` in place, as `held += x`.
    pub(in crate::tape) fn add_in_place(&self, held: &Tensor, x: &Tensor) {
        if self.works() {
            let written = bytes_of(held);
            let launch = self.kernel("add_", Class::Pointwise, held.dtype(), [0, written]);
            self.launch(launch);
            self.reads(held, &[held, x]);
        }
    }
}

fn same_layout(a: &Tensor, b: &Tensor) -> bool {
    a.shape() == b.shape() && (0..a.dim()).all(|i| a.size(i) == 1 || a.strides()[i] == b.strides()[i])
}

/// Gradients that wait at the beginnings of modules, each with the module's run and where it goes from there.
#[derive(Default)]
struct Held(Vec<(usize, Edge, Tensor)>);

impl Held {
    /// Adds a gradient to one that waits for the same tensor.
    fn put(&mut self, t: &Tape, module: usize, edge: &Edge, grad: Tensor) {
        let is_same = |(at, other, _): &&(usize, Edge, Tensor)| {
            *at == module && Rc::ptr_eq(&other.node, &edge.node) && other.slot == edge.slot
        };
        let at = self.0.iter().position(|entry| is_same(&entry));
        let Some(at) = at else {
            return self.0.push((module, edge.clone(), grad));
        };
        // The other edge is counted here, this one once both go on.
        edge.node.waits_for.set(edge.node.waits_for.get() - 1);
        let (module, edge, old) = self.0.remove(at);
        self.0.insert(at, (module, edge.clone(), summed(t, &edge, old, &grad)));
    }
}

/// Puts a gradient into the buffer of its node; adds a second one to the first, in place if nobody else holds that
/// (`InputBuffer::accumulate`).
fn receive(tape: &Tape, edge: &Edge, grad: Tensor) {
    let mut buffer = edge.node.buffer.borrow_mut();
    if buffer.len() < edge.node.outputs.len() {
        buffer.resize(edge.node.outputs.len(), None);
    }
    let slot = &mut buffer[edge.slot];
    *slot = Some(match slot.take() {
        None => grad,
        Some(old) => summed(tape, edge, old, &grad),
    });
}

/// Adds a gradient to one that came before, in place if nobody else holds that.
fn summed(tape: &Tape, edge: &Edge, old: Tensor, grad: &Tensor) -> Tensor {
    if old.is_ours_alone() {
        tape.add_in_place(&old, grad);
        return old;
    }
    // Each GPU adds a copy of its part of a whole table's gradient (`Replicate` to `Shard`).
    let _part = tape
        .is_part_of_whole(edge, grad)
        .then(|| tape.empty(*grad.shape(), grad.dtype(), "part of a gradient"));
    let strides = dims::dense_strides_like(old.shape(), old.strides());
    let sum = tape.empty_strided(*old.shape(), strides, old.dtype(), "sum of gradients");
    if tape.works() {
        tape.reads(&sum, &[&old, grad]);
    }
    sum
}

/// State in an outer backward of a node to which a nested one comes too; each backward counts for itself.
struct Aside {
    node: Rc<Node>,
    task: u32,
    waits_for: u32,
    buffer: SmallVec<[Option<Tensor>; 1]>,
}

fn restore(aside: Vec<Aside>) {
    for Aside {
        node,
        task,
        waits_for,
        buffer,
    } in aside
    {
        node.task.set(task);
        node.waits_for.set(waits_for);
        node.buffer.replace(buffer);
    }
}

/// Counts, for each node reachable from the root, how many nodes feed it; `finds` hears of each node before its state is that of
/// this backward.
fn count_dependencies(root: &Rc<Node>, task: u32, mut finds: impl FnMut(&Rc<Node>)) {
    root.task.set(task);
    root.waits_for.set(0);
    let mut stack = vec![root.clone()];
    while let Some(node) = stack.pop() {
        for edge in node.next.borrow().iter().flatten() {
            let next = &edge.node;
            if next.task.get() != task {
                finds(next);
                next.task.set(task);
                next.waits_for.set(0);
                next.buffer.borrow_mut().clear();
                stack.push(next.clone());
            }
            next.waits_for.set(next.waits_for.get() + 1);
        }
    }
}

/// A node whose gradients have all arrived; nodes recorded last come first.
struct Ready(Rc<Node>);

impl Ord for Ready {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.sequence.cmp(&other.0.sequence)
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.0.sequence == other.0.sequence
    }
}

impl Eq for Ready {}
