//! Hooks around modules of ZeRO stage 3 (`deepspeed/runtime/zero/parameter_offload.py`).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::super::modules::{Calls, Turn, known_path};
use super::coordinator::{Coordinator, Module};
use super::shards::Shards;
use crate::setup::Zero;
use crate::tape::log::ScopeId;
use crate::tape::{ModuleWatcher, Tape, Tensor};

/// Tells the coordinator of modules.
pub(super) struct Watcher {
    pub coordinator: RefCell<Coordinator>,
    /// Modules by their paths.
    known: RefCell<HashMap<String, usize>>,
    calls: Calls,
    /// False in a forward without a graph, which may come between another and its backward.
    is_traced: Cell<bool>,
    /// Modules whose forward runs.
    stack: RefCell<Vec<usize>>,
    /// A module inside the current one, which it runs as a single operation, until the next begins.
    single: Cell<Option<usize>>,
    /// Modules around the model.
    wrappers: usize,
    /// True if an operation used a parameter that was not gathered for its module.
    missed: Cell<bool>,
}

impl Watcher {
    pub fn new(shards: Shards, (zero, is_trained): (Zero, bool), wrappers: usize) -> Self {
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
            coordinator: RefCell::new(Coordinator::new(shards, modules, (zero, is_trained))),
            known: RefCell::new(known),
            calls: Calls::default(),
            is_traced: Cell::new(true),
            stack: RefCell::default(),
            single: Cell::new(None),
            wrappers,
            missed: Cell::new(false),
        }
    }

    /// Adds to modules those of these parameters that they share with others.
    pub fn share_ties(&self, t: &Tape, params: &[Tensor], ties: &[(ScopeId, Tensor)]) {
        for (scope, weight) in ties {
            if let Some(at) = params.iter().position(|param| param.is(weight)) {
                let module = self.module(t.path_of_scope(*scope));
                self.coordinator.borrow_mut().modules[module].params.push(at);
            }
        }
    }

    /// Returns true if an operation used a parameter that was not gathered for its module.
    pub fn has_missed(&self) -> bool {
        self.missed.get()
    }

    /// A module by its path, of which a part of the model that is named in full has its own beginning twice.
    fn module(&self, path: String) -> usize {
        let path = known_path(&path, |path| self.known.borrow().contains_key(path));
        *self.known.borrow_mut().entry(path).or_insert_with(|| {
            let modules = &mut self.coordinator.borrow_mut().modules;
            modules.push(Module::default());
            modules.len() - 1
        })
    }

    /// A forward of the whole model begins, without a graph if `is_traced` is false.
    pub fn begin(&self, t: &Tape, is_traced: bool) {
        self.is_traced.set(is_traced);
        if is_traced {
            self.calls.clear();
        }
        t.in_hook(|| self.coordinator.borrow_mut().reset(t));
        self.enters(t, 0);
        for at in 0..self.wrappers {
            self.enter(t, self.module(wrapper(at)), true);
        }
    }

    /// Forgets the pass that is over.
    pub fn forget(&self) {
        self.calls.forget_leaves();
    }

    /// The forward of the whole model is over.
    pub fn end(&self, t: &Tape) {
        for at in (0..self.wrappers).rev() {
            self.begins(t);
            self.leave(t, self.module(wrapper(at)));
        }
        self.leaves(t, 0);
    }

    fn enter(&self, t: &Tape, module: usize, is_by_position: bool) {
        self.stack.borrow_mut().push(module);
        t.in_hook(|| t.in_scope(0, || self.coordinator.borrow_mut().fetch(t, module, true)));
        if !t.makes_graph() || !self.is_traced.get() {
            return;
        }
        self.calls.enter(t, module, is_by_position);
    }

    fn leave(&self, t: &Tape, module: usize) {
        self.stack.borrow_mut().pop();
        t.in_hook(|| t.in_scope(0, || self.coordinator.borrow_mut().release(t, module, true)));
        if !t.makes_graph() || !self.is_traced.get() {
            return;
        }
        self.calls.leave(t);
    }

    /// The current module takes a parameter of another, which `ZeROOrderedDict` gathers in a forward, and finds missing in a
    /// recomputation unless an earlier run of the module has registered it.
    fn takes_unasked(&self, t: &Tape, at: usize) {
        let around = self.stack.borrow().last().copied().filter(|_| !t.is_in_backward());
        match around {
            Some(around) => t.in_hook(|| self.coordinator.borrow_mut().ask(t, at, around)),
            None => self.missed.set(true),
        }
    }
}

impl ModuleWatcher for Watcher {
    fn enters(&self, t: &Tape, scope: ScopeId) {
        self.begins(t);
        let path = t.path_of_scope(scope);
        if is_no_module(&path, scope) {
            return;
        }
        // transformers calls it by the names of its arguments alone.
        let is_by_position = !path.ends_with("self_attn");
        self.enter(t, self.module(path), is_by_position);
    }

    fn leaves(&self, t: &Tape, scope: ScopeId) {
        self.begins(t);
        let path = t.path_of_scope(scope);
        if !is_no_module(&path, scope) {
            self.leave(t, self.module(path));
        }
    }

    fn begins(&self, t: &Tape) {
        if let Some(module) = self.single.take() {
            self.leave(t, module);
        }
    }

    fn nests(&self, t: &Tape, inputs: &[Tensor]) {
        self.calls.nest(t, inputs);
    }

    fn unnests(&self, _: &Tape) {
        self.calls.unnest();
    }

    fn uses(&self, t: &Tape, x: &Tensor) {
        let (at, found) = {
            let coordinator = self.coordinator.borrow();
            let shards = coordinator.shards.list.iter().enumerate();
            let mut same = shards.filter(|(_, shard)| shard.param.storage().same(x.storage()));
            let Some((at, shard)) = same.next() else { return };
            let has = |module: &usize| coordinator.modules[*module].params.contains(&at);
            // A module around it may own the parameter, and has then gathered it already.
            if self.stack.borrow().iter().any(has) || t.is_in_backward_of_node() {
                return;
            }
            (at, shard.module.clone())
        };
        if !found.starts_with(&t.path_of_scope(t.scope_id())) {
            return self.takes_unasked(t, at);
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
            t.in_hook(|| coordinator.ask(t, at, around));
        }
    }

    /// It is gathered as any that is asked for.
    fn takes(&self, t: &Tape, x: &Tensor) -> Option<Tensor> {
        self.asks(t, x);
        None
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.calls.make_leaf(t, leaf);
    }

    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize> {
        // A recomputation that has stopped leaves no modules.
        self.stack.borrow_mut().clear();
        self.single.set(None);
        let (passed, turn) = self.calls.come_to(node)?;
        let act = || match turn {
            Turn::Into(module) => self.coordinator.borrow_mut().fetch(t, module, false),
            Turn::OutOf(module) => self.coordinator.borrow_mut().release(t, module, false),
            Turn::Past(_) | Turn::None => {}
        };
        t.in_hook(|| t.in_scope(0, act));
        Some(passed)
    }

    fn leaves_by(&self, node: u64) -> Option<usize> {
        self.calls.leaves_by(node)
    }

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        self.calls.place_of_leaf(x)
    }
}

/// Name of a module around the model, by its place within the outermost.
fn wrapper(at: usize) -> String {
    format!("{at} around the model")
}

/// True for a part of a step that the log names like a module: the loss, a function that the model calls; the whole model again,
/// which is entered by itself.
fn is_no_module(path: &str, scope: ScopeId) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    last == "loss" || last.is_empty() && scope != 0
}
