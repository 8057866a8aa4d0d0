//! Hooks around modules of ZeRO stage 3 (`deepspeed/runtime/zero/parameter_offload.py`).
//!
//! DeepSpeed puts a function of autograd before and after each module. Backward runs nodes from the last to the first, so
//! these come between the nodes of the module and those around it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::coordinator::{Coordinator, Module};
use super::shards::Shards;
use crate::setup::Zero;
use crate::tape::log::ScopeId;
use crate::tape::{ModuleWatcher, Tape, Tensor};

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

/// Tells the coordinator of modules.
pub(super) struct Watcher {
    pub coordinator: RefCell<Coordinator>,
    /// Modules by their paths.
    known: RefCell<HashMap<String, usize>>,
    calls: RefCell<Vec<Call>>,
    /// Calls that are not over.
    running: RefCell<Vec<usize>>,
    /// Modules whose forward runs.
    stack: RefCell<Vec<usize>>,
    /// A module inside the current one, which it runs as a single operation, until the next begins.
    single: Cell<Option<usize>>,
    /// Ends of calls that backward has not come to.
    ends: RefCell<Vec<End>>,
    /// Calls that backward is in.
    open: RefCell<Vec<usize>>,
    /// Leaves that are results of modules, each with its place among the nodes.
    leaves: RefCell<Vec<(Tensor, u64)>>,
    /// Modules around the model.
    wrappers: usize,
    /// True if an operation used a parameter that was not gathered for its module.
    missed: Cell<bool>,
}

impl Watcher {
    pub fn new(shards: Shards, zero: Zero, wrappers: usize) -> Self {
        let (mut known, mut modules) = (HashMap::new(), Vec::new());
        for (at, shard) in shards.list.iter().enumerate() {
            let module = *known.entry(shard.module.replace("..", ".")).or_insert_with(|| {
                modules.push(Module::default());
                modules.len() - 1
            });
            modules[module].params.push(at);
        }
        // peft asks for the type of `lora_A.weight` in the module around it, of which it is an external parameter.
        for (at, shard) in shards.list.iter().enumerate() {
            if let Some(around) = shard.module.strip_suffix(".lora_A") {
                let module = *known.entry(around.to_owned()).or_insert_with(|| {
                    modules.push(Module::default());
                    modules.len() - 1
                });
                modules[module].params.push(at);
            }
        }
        Self {
            coordinator: RefCell::new(Coordinator::new(shards, modules, zero)),
            known: RefCell::new(known),
            calls: RefCell::default(),
            running: RefCell::default(),
            stack: RefCell::default(),
            single: Cell::new(None),
            ends: RefCell::default(),
            open: RefCell::default(),
            leaves: RefCell::default(),
            wrappers,
            missed: Cell::new(false),
        }
    }

    /// Adds a parameter of another module to one.
    pub fn share(&self, path: &str, at: usize) {
        let module = self.module(path.to_owned());
        self.coordinator.borrow_mut().modules[module].params.push(at);
    }

    /// Returns true if an operation used a parameter that was not gathered for its module.
    pub fn has_missed(&self) -> bool {
        self.missed.get()
    }

    /// A module by its path, of which a part of the model that is named in full has its own beginning twice.
    fn module(&self, path: String) -> usize {
        let mut path = path.replace("..", ".");
        if !self.known.borrow().contains_key(&path) {
            let twice = path.match_indices('.').map(|(at, _)| path.split_at(at));
            let rest = |(before, after): (&str, &str)| after[1..].starts_with(before).then(|| after[1..].to_owned());
            path = twice
                .filter_map(rest)
                .find(|rest| self.known.borrow().contains_key(rest))
                .unwrap_or(path);
        }
        *self.known.borrow_mut().entry(path).or_insert_with(|| {
            let modules = &mut self.coordinator.borrow_mut().modules;
            modules.push(Module::default());
            modules.len() - 1
        })
    }

    /// The forward of the whole model begins.
    pub fn begin(&self, t: &Tape, is_first: bool) {
        self.calls.borrow_mut().clear();
        self.leaves.borrow_mut().clear();
        self.ends.borrow_mut().clear();
        self.open.borrow_mut().clear();
        self.coordinator.borrow_mut().reset(t, is_first);
        (0..=self.wrappers).for_each(|_| self.enters(t, 0));
    }

    /// Forgets the pass that is over.
    pub fn forget(&self) {
        self.leaves.borrow_mut().clear();
    }

    /// The forward of the whole model is over.
    pub fn end(&self, t: &Tape) {
        (0..=self.wrappers).for_each(|_| self.leaves(t, 0));
    }

    fn enter(&self, t: &Tape, module: usize, is_by_position: bool) {
        self.stack.borrow_mut().push(module);
        t.in_scope(0, || self.coordinator.borrow_mut().fetch(t, module, true));
        if t.is_in_backward() {
            return;
        }
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

    fn leave(&self, t: &Tape, module: usize) {
        self.stack.borrow_mut().pop();
        t.in_scope(0, || self.coordinator.borrow_mut().release(t, module, true));
        if t.is_in_backward() {
            return;
        }
        if let Some(call) = self.running.borrow_mut().pop() {
            self.ends.borrow_mut().push(End {
                at: t.next_node(),
                call,
                is_exit: true,
            });
        }
    }

    fn come_to(&self, t: &Tape, end: End, node: Option<u64>) {
        let (module, start, passes, is_leaf) = {
            let call = &self.calls.borrow()[end.call];
            (call.module, call.start, call.passes, call.is_leaf)
        };
        if end.is_exit {
            if is_leaf || node.is_some_and(|node| node >= start) {
                self.open.borrow_mut().push(end.call);
                self.coordinator.borrow_mut().fetch(t, module, false);
            }
            return;
        }
        let mut open = self.open.borrow_mut();
        if open.last() == Some(&end.call) {
            open.pop();
            if passes {
                self.coordinator.borrow_mut().release(t, module, false);
            }
        }
    }
}

impl ModuleWatcher for Watcher {
    fn enters(&self, t: &Tape, scope: ScopeId) {
        self.begins(t);
        let path = t.path_of_scope(scope);
        // transformers calls it by the names of its arguments alone.
        let is_by_position = !path.ends_with("self_attn");
        self.enter(t, self.module(path), is_by_position);
    }

    fn leaves(&self, t: &Tape, scope: ScopeId) {
        self.begins(t);
        self.leave(t, self.module(t.path_of_scope(scope)));
    }

    fn begins(&self, t: &Tape) {
        if let Some(module) = self.single.take() {
            self.leave(t, module);
        }
    }

    fn uses(&self, t: &Tape, x: &Tensor) {
        let found = {
            let coordinator = self.coordinator.borrow();
            let shards = coordinator.shards.list.iter().enumerate();
            let mut same = shards.filter(|(_, shard)| shard.param.storage().same(x.storage()));
            let Some((at, shard)) = same.next() else { return };
            let has = |module: &usize| coordinator.modules[*module].params.contains(&at);
            if self.stack.borrow().iter().any(has) || t.is_in_backward_of_node() {
                return;
            }
            shard.module.clone()
        };
        if !found.starts_with(&t.path_of_scope(t.scope_id())) {
            return self.missed.set(true);
        }
        let module = self.module(found);
        self.enter(t, module, true);
        self.single.set(Some(module));
    }

    fn asks(&self, t: &Tape, x: &Tensor) {
        let mut coordinator = self.coordinator.borrow_mut();
        let mut shards = coordinator.shards.list.iter();
        let at = shards.position(|shard| shard.param.storage().same(x.storage()));
        let around = self.stack.borrow().last().copied();
        if let Some((at, around)) = at.zip(around) {
            coordinator.ask(t, at, around);
        }
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.leaves.borrow_mut().push((leaf.clone(), t.next_node() - 1));
        if let Some(&call) = self.running.borrow().last() {
            self.calls.borrow_mut()[call].is_leaf = true;
        }
    }

    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize> {
        // A recomputation that has stopped leaves no modules.
        self.stack.borrow_mut().clear();
        self.single.set(None);
        let end = {
            let mut ends = self.ends.borrow_mut();
            let is_next = |end: &End| node.is_none_or(|node| end.at > node);
            ends.last().copied().filter(is_next)?;
            ends.pop()?
        };
        t.in_scope(0, || self.come_to(t, end, node));
        Some(if end.is_exit { usize::MAX } else { end.call })
    }

    fn leaves_by(&self, node: u64) -> Option<usize> {
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

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        let leaves = self.leaves.borrow();
        leaves.iter().find(|(leaf, _)| leaf.is(x)).map(|(_, place)| *place)
    }
}
