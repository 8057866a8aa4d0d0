//! The model that DPO compares with, in parts under ZeRO stage 3: TRL gives it an engine without an optimizer
//! (`prepare_deepspeed` of `trl/models/utils.py`), whose hooks and whose order of modules are its own
//! (`DeepSpeedZeRoOffload`).

use std::rc::Rc;

use super::super::super::trl::REFERENCE_SCOPE;
use super::super::super::wrapper::Wrapper;
use super::shards::Shards;
use super::watcher::Watcher;
use crate::setup::Zero;
use crate::tape::log::ScopeId;
use crate::tape::{ModuleWatcher, Tape, Tensor};

/// The engine around it.
pub(super) struct Compared {
    pub watcher: Rc<Watcher>,
}

impl Compared {
    pub fn new(shards: Shards, zero: Zero) -> Self {
        Self {
            watcher: Rc::new(Watcher::new(shards, (zero, false), 0)),
        }
    }
}

impl Wrapper for Compared {
    fn begin(&self, _: bool) {}

    fn before_forward(&self, t: &Tape) {
        let is_traced = t.is_grad_enabled();
        t.no_grad(|| self.watcher.begin(t, is_traced));
    }

    fn after_forward(&self, t: &Tape) {
        t.no_grad(|| self.watcher.end(t));
    }
}

/// Tells the modules of each of two models to its own watcher.
pub(super) struct Apart {
    pub trained: Rc<Watcher>,
    pub compared: Rc<Watcher>,
}

impl Apart {
    /// The watcher of what runs in a scope.
    fn of(&self, t: &Tape, scope: ScopeId) -> &Watcher {
        match t.path_of_scope(scope).starts_with(REFERENCE_SCOPE) {
            true => &self.compared,
            false => &self.trained,
        }
    }
}

impl ModuleWatcher for Apart {
    fn enters(&self, t: &Tape, module: ScopeId) {
        if !is_whole(t, module) {
            self.of(t, module).enters(t, module);
        }
    }

    fn leaves(&self, t: &Tape, module: ScopeId) {
        if !is_whole(t, module) {
            self.of(t, module).leaves(t, module);
        }
    }

    // Backward is of the trained model alone.
    fn reaches(&self, t: &Tape, node: Option<u64>) -> Option<usize> {
        self.trained.reaches(t, node)
    }

    fn leaves_by(&self, node: u64) -> Option<usize> {
        self.trained.leaves_by(node)
    }

    fn begins(&self, t: &Tape) {
        self.of(t, t.scope_id()).begins(t);
    }

    // Each knows its own parameters.
    fn uses(&self, t: &Tape, x: &Tensor) {
        self.trained.uses(t, x);
        self.compared.uses(t, x);
    }

    fn asks(&self, t: &Tape, x: &Tensor) {
        self.trained.asks(t, x);
        self.compared.asks(t, x);
    }

    fn takes(&self, t: &Tape, x: &Tensor) -> Option<Tensor> {
        self.asks(t, x);
        None
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.of(t, t.scope_id()).makes_leaf(t, leaf);
    }

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        self.trained.place_of_leaf(x)
    }
}

/// True for the scope of the whole model that is compared with: its engine enters it by itself.
fn is_whole(t: &Tape, scope: ScopeId) -> bool {
    t.path_of_scope(scope) == REFERENCE_SCOPE
}
