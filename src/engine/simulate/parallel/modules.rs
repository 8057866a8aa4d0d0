//! Runs of modules in a forward, and how backward goes through them.
//!
//! Libraries put functions of autograd, or hooks on gradients, before and after modules. Backward runs nodes from the last
//! to the first, so these come between the nodes of a module and those around it.

use std::cell::RefCell;

use crate::tape::{Tape, Tensor};

/// A run of a module's forward.
struct Call {
    module: usize,
    /// Number of the first node of the graph that it makes.
    start: u64,
    /// True if a gradient leaves it through its input.
    passes: bool,
    /// True if it gets its input by position: a function is put before no other.
    is_by_position: bool,
    /// True if its result is a leaf that requires a gradient.
    is_leaf: bool,
}

/// One end of a module's forward, before the node `at`.
#[derive(Clone, Copy)]
struct End {
    at: u64,
    call: usize,
    is_exit: bool,
}

/// What backward does at an end of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It enters the module.
    Into(usize),
    /// It has left the module, with a gradient of its input.
    OutOf(usize),
    /// It has left the module, to whose input no gradient goes.
    Past(usize),
    /// Nothing that a library is told of.
    None,
}

/// The runs of modules whose graph backward goes through.
#[derive(Default)]
struct Graph {
    calls: Vec<Call>,
    /// Calls that are not over.
    running: Vec<usize>,
    /// Ends of calls that backward has not come to.
    ends: Vec<End>,
    /// Calls that backward is in.
    open: Vec<usize>,
}

/// The runs of modules in a forward, and in the recomputation of a block whose own backward runs within a node.
#[derive(Default)]
pub(super) struct Calls {
    graph: RefCell<Graph>,
    /// Graphs around that of a block, the step's first, each with the number of leaves that it has.
    outer: RefCell<Vec<(Graph, usize)>>,
    /// Leaves that are results of modules, or inputs of a block that runs again, each with its place among the nodes.
    leaves: RefCell<Vec<(Tensor, u64)>>,
}

impl Calls {
    /// Forgets an earlier forward.
    pub fn clear(&self) {
        self.graph.take();
        self.forget_leaves();
    }

    /// A block is about to run again, and then to go backward through the graph of that run alone. Its inputs are leaves, before
    /// which the functions of the modules come that get them.
    pub fn nest(&self, t: &Tape, inputs: &[Tensor]) {
        let mut leaves = self.leaves.borrow_mut();
        self.outer.borrow_mut().push((self.graph.take(), leaves.len()));
        let before = t.next_node().saturating_sub(1);
        let trained = inputs.iter().filter(|x| x.requires_grad());
        leaves.extend(trained.map(|x| (x.clone(), before)));
    }

    /// Goes on with the graph around the block's.
    pub fn unnest(&self) {
        if let Some((graph, leaves)) = self.outer.borrow_mut().pop() {
            self.graph.replace(graph);
            self.leaves.borrow_mut().truncate(leaves);
        }
    }

    /// Lets go of leaves, once backward is over.
    pub fn forget_leaves(&self) {
        self.leaves.borrow_mut().clear();
    }

    /// A module's forward begins.
    pub fn enter(&self, t: &Tape, module: usize, is_by_position: bool) {
        let graph = &mut *self.graph.borrow_mut();
        let (start, call) = (t.next_node(), graph.calls.len());
        graph.calls.push(Call {
            module,
            start,
            passes: false,
            is_by_position,
            is_leaf: false,
        });
        graph.running.push(call);
        graph.ends.push(End {
            at: start,
            call,
            is_exit: false,
        });
    }

    /// The forward of the module that was entered last is over.
    pub fn leave(&self, t: &Tape) {
        let graph = &mut *self.graph.borrow_mut();
        if let Some(call) = graph.running.pop() {
            graph.ends.push(End {
                at: t.next_node(),
                call,
                is_exit: true,
            });
        }
    }

    /// The forward of a module is over, and with it those of modules in it that have not ended: of a group of modules one of
    /// which never runs, such as a head whose weight alone a loss takes.
    pub fn leave_module(&self, t: &Tape, module: usize) {
        let is_inside = |graph: &Graph| {
            let last = graph.running.last();
            last.is_some_and(|&call| graph.calls[call].module != module)
        };
        while is_inside(&self.graph.borrow()) {
            self.leave(t);
        }
        self.leave(t);
    }

    /// Passes the next end before a node to which backward comes, to none at its end. Returns what
    /// [`ModuleWatcher::reaches`](crate::tape::ModuleWatcher::reaches) does, and what to do there.
    pub fn come_to(&self, node: Option<u64>) -> Option<(usize, Turn)> {
        let Graph { calls, ends, open, .. } = &mut *self.graph.borrow_mut();
        ends.last().filter(|end| node.is_none_or(|node| end.at > node))?;
        let end = ends.pop()?;
        let call = &calls[end.call];
        if end.is_exit {
            let enters = call.is_leaf || node.is_some_and(|node| node >= call.start);
            if enters {
                open.push(end.call);
            }
            return Some((usize::MAX, if enters { Turn::Into(call.module) } else { Turn::None }));
        }
        let leaves = open.last() == Some(&end.call);
        if leaves {
            open.pop();
        }
        let turn = match (leaves, call.passes) {
            (true, true) => Turn::OutOf(call.module),
            (true, false) => Turn::Past(call.module),
            (false, _) => Turn::None,
        };
        Some((end.call, turn))
    }

    /// The run of a module through whose beginning a gradient for a node goes.
    pub fn leaves_by(&self, node: u64) -> Option<usize> {
        let Graph { calls, open, .. } = &mut *self.graph.borrow_mut();
        for &call in open.iter().rev() {
            if calls[call].start <= node {
                return None;
            }
            if calls[call].is_by_position {
                calls[call].passes = true;
                return Some(call);
            }
        }
        None
    }

    /// The result of the current module becomes a leaf.
    pub fn make_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.leaves.borrow_mut().push((leaf.clone(), t.next_node() - 1));
        let Graph { calls, running, .. } = &mut *self.graph.borrow_mut();
        if let Some(&call) = running.last() {
            calls[call].is_leaf = true;
        }
    }

    /// Place among the nodes of such a leaf.
    pub fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        let leaves = self.leaves.borrow();
        leaves.iter().find(|(leaf, _)| leaf.is(x)).map(|(_, place)| *place)
    }
}

/// Path of a module that is known; a part of the model that is named in full has its own beginning twice.
pub(super) fn known_path(path: &str, is_known: impl Fn(&str) -> bool) -> String {
    let path = path.replace("..", ".");
    if is_known(&path) {
        return path;
    }
    let twice = path.match_indices('.').map(|(at, _)| path.split_at(at));
    let rest = |(before, after): (&str, &str)| after[1..].starts_with(before).then(|| after[1..].to_owned());
    let found = twice.filter_map(rest).find(|rest| is_known(rest));
    found.unwrap_or(path)
}
