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

/// The runs of modules in a forward, and in the recomputation of a block whose own backward runs within a node.
#[derive(Default)]
pub(super) struct Calls {
    /// What was noted of the step's graph while a block's own runs.
    outer: RefCell<Vec<Noted>>,
    calls: RefCell<Vec<Call>>,
    /// Calls that are not over.
    running: RefCell<Vec<usize>>,
    /// Ends of calls that backward has not come to.
    ends: RefCell<Vec<End>>,
    /// Calls that backward is in.
    open: RefCell<Vec<usize>>,
    /// Leaves that are results of modules, each with its place among the nodes.
    leaves: RefCell<Vec<(Tensor, u64)>>,
}

/// Calls of one graph, their ends and those that backward is in; leaves belong to the step's graph alone.
type Noted = (Vec<Call>, Vec<usize>, Vec<End>, Vec<usize>);

impl Calls {
    /// Forgets an earlier forward.
    pub fn clear(&self) {
        self.calls.borrow_mut().clear();
        self.running.borrow_mut().clear();
        self.ends.borrow_mut().clear();
        self.open.borrow_mut().clear();
        self.forget_leaves();
    }

    /// A block is about to run again, and then to go backward through the graph of that run alone.
    pub fn nest(&self) {
        let noted = (
            self.calls.take(),
            self.running.take(),
            self.ends.take(),
            self.open.take(),
        );
        self.outer.borrow_mut().push(noted);
    }

    /// Goes on with the graph around the block's.
    pub fn unnest(&self) {
        if let Some((calls, running, ends, open)) = self.outer.borrow_mut().pop() {
            self.calls.replace(calls);
            self.running.replace(running);
            self.ends.replace(ends);
            self.open.replace(open);
        }
    }

    /// Lets go of leaves, once backward is over.
    pub fn forget_leaves(&self) {
        self.leaves.borrow_mut().clear();
    }

    /// A module's forward begins.
    pub fn enter(&self, t: &Tape, module: usize, is_by_position: bool) {
        let start = t.next_node();
        let mut calls = self.calls.borrow_mut();
        calls.push(Call {
            module,
            start,
            passes: false,
            is_by_position,
            is_leaf: false,
        });
        let call = calls.len() - 1;
        self.running.borrow_mut().push(call);
        self.ends.borrow_mut().push(End {
            at: start,
            call,
            is_exit: false,
        });
    }

    /// The forward of the module that was entered last is over.
    pub fn leave(&self, t: &Tape) {
        if let Some(call) = self.running.borrow_mut().pop() {
            self.ends.borrow_mut().push(End {
                at: t.next_node(),
                call,
                is_exit: true,
            });
        }
    }

    /// The forward of a module is over, and with it those of modules in it that have not ended: of a group of modules one of
    /// which never runs, such as a head whose weight alone a loss takes.
    pub fn leave_module(&self, t: &Tape, module: usize) {
        let is_inside = |call: &usize| self.calls.borrow()[*call].module != module;
        while self.running.borrow().last().is_some_and(is_inside) {
            self.leave(t);
        }
        self.leave(t);
    }

    /// Passes the next end before a node to which backward comes, to none at its end. Returns what
    /// [`ModuleWatcher::reaches`](crate::tape::ModuleWatcher::reaches) does, and what to do there.
    pub fn come_to(&self, node: Option<u64>) -> Option<(usize, Turn)> {
        let end = {
            let mut ends = self.ends.borrow_mut();
            ends.last().filter(|end| node.is_none_or(|node| end.at > node))?;
            ends.pop()?
        };
        let calls = self.calls.borrow();
        let call = &calls[end.call];
        let mut open = self.open.borrow_mut();
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
        let mut calls = self.calls.borrow_mut();
        for &call in self.open.borrow().iter().rev() {
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
        if let Some(&call) = self.running.borrow().last() {
            self.calls.borrow_mut()[call].is_leaf = true;
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
