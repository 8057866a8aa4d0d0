//! Modules of a model that is trained, and of one that DPO compares with, each wrapped by itself.

use std::rc::Rc;

use super::super::trl::REFERENCE_SCOPE;
use crate::tape::log::ScopeId;
use crate::tape::{ModuleWatcher, Tape, Tensor};

/// Tells the modules of each of two models to its own watcher.
pub(super) struct Apart {
    pub trained: Rc<dyn ModuleWatcher>,
    pub compared: Rc<dyn ModuleWatcher>,
}

impl Apart {
    /// The watcher of what runs in a scope.
    fn of(&self, t: &Tape, scope: ScopeId) -> &dyn ModuleWatcher {
        match t.path_of_scope(scope).starts_with(REFERENCE_SCOPE) {
            true => &*self.compared,
            false => &*self.trained,
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

    fn nests(&self, t: &Tape, inputs: &[Tensor]) {
        self.trained.nests(t, inputs);
    }

    fn unnests(&self, t: &Tape) {
        self.trained.unnests(t);
    }

    fn wraps_checkpoints(&self) -> bool {
        self.trained.wraps_checkpoints()
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
        self.trained.takes(t, x).or_else(|| self.compared.takes(t, x))
    }

    fn makes_leaf(&self, t: &Tape, leaf: &Tensor) {
        self.of(t, t.scope_id()).makes_leaf(t, leaf);
    }

    fn place_of_leaf(&self, x: &Tensor) -> Option<u64> {
        self.trained.place_of_leaf(x)
    }
}

/// True for the scope of the whole model that is compared with: what wraps it enters it by itself.
fn is_whole(t: &Tape, scope: ScopeId) -> bool {
    t.path_of_scope(scope) == REFERENCE_SCOPE
}
