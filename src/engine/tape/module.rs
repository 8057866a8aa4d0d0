//! Modules as the tape sees them.

use super::core::Tape;
use super::kind::Component;
use super::log::ScopeId;

/// A module's name in the module around it, which it learns when it is made and enters whenever it is called, as
/// `torch.nn.Module.__call__` runs hooks around `forward`.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    name: &'static str,
    /// Position in a list of modules.
    index: Option<u32>,
    /// Part of the model that begins with this module; `None` if it belongs to the part of the module that calls it.
    component: Option<Component>,
    made: ScopeId,
}

impl Module {
    /// Makes a module that has no parameters, and so is not entered when it is made.
    pub const fn without_parameters(name: &'static str) -> Self {
        Self {
            name,
            index: None,
            component: None,
            made: 0,
        }
    }

    /// The module's scope at the time when it was made, in which its parameters were made. Unlike the scopes of its calls, it
    /// is one for each module.
    pub const fn made(&self) -> ScopeId {
        self.made
    }

    /// Calls the module: everything that `forward` makes is the module's, and the library that watches modules hears when it
    /// is entered and left.
    ///
    /// `forward` owns what it is given (`move`), since Python frees a forward's arguments before hooks behind it run.
    pub fn call<R>(&self, t: &Tape, forward: impl FnOnce() -> R) -> R {
        t.enter(self.name, self.index, self.component, forward)
    }

    /// Calls the module, which is entered only if a library watches modules: its memory is counted as that of the module
    /// around it.
    pub fn call_if_watched<R>(&self, t: &Tape, forward: impl FnOnce() -> R) -> R {
        match t.watcher() {
            Some(_) => self.call(t, forward),
            None => forward(),
        }
    }
}

impl Tape {
    /// The module that is being made.
    pub fn module(&self) -> Module {
        let made = self.scope_id();
        let log = self.0.log.borrow();
        let scope = log.scopes[made as usize];
        let around = log.scopes[scope.parent as usize];
        Module {
            name: scope.name,
            index: scope.index,
            component: (scope.component != around.component).then_some(scope.component),
            made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    #[test]
    fn a_module_is_entered_by_the_name_it_was_made_with() {
        let t = Tape::new(Gpu::default());
        let [head, block] = t.component("model", Component::LanguageModel, || {
            let head = t.component("lm_head", Component::Head, || t.module());
            [head, t.layer("layers", 3, || t.module())]
        });
        assert_eq!(t.path_of_scope(head.made()), "model.lm_head");
        assert_eq!(t.scope_id(), 0);
        let here = || (t.path_of_scope(t.scope_id()), t.component_now());
        // Called from elsewhere, it is there; the part of the model that it begins is its own, else its caller's.
        let called = |module: &Module| t.component("tower", Component::VisionTower, || module.call(&t, here));
        assert_eq!(called(&head), ("tower.lm_head".to_owned(), Component::Head));
        assert_eq!(called(&block), ("tower.layers.3".to_owned(), Component::VisionTower));
        assert_eq!(
            called(&Module::without_parameters("v_norm")),
            ("tower.v_norm".to_owned(), Component::VisionTower)
        );
        assert_eq!(t.scope_id(), 0);
    }

    #[test]
    fn a_module_that_is_not_told_apart_is_entered_for_a_library_alone() {
        let t = Tape::new(Gpu::default());
        let map = t.scope("c_attn", || t.module());
        let here = || t.path_of_scope(t.scope_id());
        assert_eq!(map.call_if_watched(&t, here), "");
        assert_eq!(map.call(&t, here), "c_attn");
    }
}
