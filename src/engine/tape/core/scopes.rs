//! Modules of the model as scopes of the tape.

use super::*;

impl Tape {
    /// Current module.
    pub fn scope_id(&self) -> ScopeId {
        self.0.scope.get()
    }

    pub(in crate::tape) fn set_scope(&self, scope: ScopeId) -> ScopeId {
        self.0.scope.replace(scope)
    }

    /// Current part of the model.
    pub fn component_now(&self) -> Component {
        self.0.log.borrow().scopes[self.0.scope.get() as usize].component
    }

    /// Dotted path of the module and operation that allocated a tensor's memory.
    pub(crate) fn path_of(&self, x: &Tensor) -> String {
        let log = self.0.log.borrow();
        let Some(allocation) = x.storage().id().map(|id| &log.allocations[id as usize]) else {
            return String::new();
        };
        let module = log.path(allocation.scope);
        if module.is_empty() {
            allocation.name.to_owned()
        } else {
            module + "." + allocation.name
        }
    }

    /// Module that allocated a tensor's memory.
    pub fn scope_of(&self, t: &Tensor) -> ScopeId {
        t.storage()
            .id()
            .map_or(0, |id| self.0.log.borrow().allocations[id as usize].scope)
    }

    /// Dotted path of a module.
    pub(crate) fn path_of_scope(&self, scope: ScopeId) -> String {
        self.0.log.borrow().path(scope)
    }

    /// Part of the model that a module belongs to.
    pub(crate) fn component_of_scope(&self, scope: ScopeId) -> Component {
        self.0.log.borrow().scopes[scope as usize].component
    }

    /// Runs `f` in a module that was entered before.
    pub fn in_scope<R>(&self, scope: ScopeId, f: impl FnOnce() -> R) -> R {
        let before = self.set_scope(scope);
        let result = f();
        self.set_scope(before);
        result
    }

    /// Runs `f` as the submodule `name` of the current module.
    pub fn scope<R>(&self, name: &'static str, f: impl FnOnce() -> R) -> R {
        self.enter(name, None, None, f)
    }

    /// Runs `f` as the module `name.index`.
    pub fn layer<R>(&self, name: &'static str, index: usize, f: impl FnOnce() -> R) -> R {
        self.enter(name, Some(index as u32), None, f)
    }

    /// Runs `f` as a submodule that is a named part of the model.
    pub fn component<R>(&self, name: &'static str, component: Component, f: impl FnOnce() -> R) -> R {
        self.enter(name, None, Some(component), f)
    }

    pub(in crate::tape) fn enter<R>(
        &self,
        name: &'static str,
        index: Option<u32>,
        component: Option<Component>,
        f: impl FnOnce() -> R,
    ) -> R {
        let parent = self.open(name, index, component);
        self.host_op(HostOp::Module);
        let own = self.0.scope.get();
        if let Some(watcher) = self.watcher() {
            watcher.enters(self, own);
        }
        let result = f();
        if let Some(watcher) = self.watcher() {
            watcher.leaves(self, own);
        }
        self.0.scope.set(parent);
        result
    }

    /// Enters a new module, of the current part of the model unless one is given, and returns the module that it was
    /// entered from. Not inlined, because models call it at hundreds of places.
    #[inline(never)]
    fn open(&self, name: &'static str, index: Option<u32>, component: Option<Component>) -> ScopeId {
        self.send_new_events();
        let parent = self.0.scope.get();
        let mut log = self.0.log.borrow_mut();
        let component = component.unwrap_or(log.scopes[parent as usize].component);
        log.scopes.push(Scope {
            parent,
            name,
            index,
            component,
        });
        self.0.scope.replace((log.scopes.len() - 1) as ScopeId)
    }
}
