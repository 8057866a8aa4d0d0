//! Modules of a list.

use std::ops::Deref;
use std::rc::Rc;

use super::builder::Builder;
use crate::tape::{Module, Tape};

/// A module of a `torch.nn.ModuleList`, which is called by its number. Clones share it: a checkpointed block is held until it
/// has been recomputed.
pub struct Numbered<M: ?Sized> {
    module: Module,
    inner: Rc<M>,
}

impl<M: ?Sized> Numbered<M> {
    /// Makes the module `name.number`.
    pub fn new(b: &Builder, name: &'static str, number: usize, make: impl FnOnce() -> Rc<M>) -> Self {
        b.tape().layer(name, number, || Self {
            module: b.module(),
            inner: make(),
        })
    }

    /// Returns the module itself: its name and number.
    pub const fn module(&self) -> Module {
        self.module
    }

    /// Enters the module for `forward`.
    pub fn enter<R>(&self, t: &Tape, forward: impl FnOnce() -> R) -> R {
        self.module.call(t, forward)
    }
}

impl<M: ?Sized> Clone for Numbered<M> {
    fn clone(&self) -> Self {
        Self {
            module: self.module,
            inner: self.inner.clone(),
        }
    }
}

impl<M: ?Sized> Deref for Numbered<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.inner
    }
}
