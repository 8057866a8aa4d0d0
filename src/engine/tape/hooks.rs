//! Hooks of a library that runs the training: on gradients as they are made, and on the memory of parameters, which it
//! replaces (`param.data = …`).

use super::core::{GradientHook, Tape};
use super::kind::Kind;
use super::tensor::Tensor;
use super::why::Why;
use crate::dtype::DType;

impl Tape {
    /// Sets the hook that runs after each gradient of a backward.
    pub fn on_gradient(&self, hook: Option<GradientHook>) {
        *self.0.gradient_hook.borrow_mut() = hook;
    }

    /// Runs the hook on a parameter whose gradient was just made.
    pub(super) fn tell_gradient(&self, leaf: &Tensor) {
        let hook = self.0.gradient_hook.borrow().clone();
        if let Some(hook) = hook {
            hook(self, leaf);
        }
    }

    /// Type that a library gives parameters once the model is made.
    pub fn recast(&self) -> Option<DType> {
        self.0.recast.get()
    }

    /// Sets the type that a library gives parameters of the models made from now on.
    pub fn set_recast(&self, dtype: Option<DType>) {
        self.0.recast.set(dtype);
    }

    /// Makes a tensor of type `after` whose memory is of type `before` until [`Tape::move_to`] replaces it.
    pub fn empty_to_recast(&self, like: &Tensor, after: DType) -> Tensor {
        like.alias_as(*like.shape(), *like.strides(), after)
    }

    /// Gives a tensor new memory in its own type, then frees the old.
    pub fn move_to(&self, x: &Tensor, name: &'static str) {
        let scope = self.scope_of(x);
        let new = self.in_scope(scope, || {
            self.as_kind(Kind::Weight, || self.storage(x.shape(), x.dtype(), name))
        });
        new.classify(Kind::Weight, Why::Parameter);
        x.storage().take_over(&new);
    }

    /// Forgets what was made and freed so far, which `empty_cache` gives back to the driver.
    pub fn forget_freed(&self) {
        let mut log = self.0.log.borrow_mut();
        let mut is_freed = vec![false; log.allocations.len()];
        for event in log.events.iter().filter(|event| !event.is_alloc()) {
            is_freed[event.storage() as usize] = true;
        }
        log.events.retain(|event| !is_freed[event.storage() as usize]);
    }

    /// Frees a tensor's memory: its values lie in memory of another from now on, or nowhere.
    pub fn give_up(&self, x: &Tensor) {
        x.storage().give_up();
    }
}
