//! Tensors that a module keeps from one forward to the next.

use std::cell::{Cell, RefCell};

use super::core::Tape;
use super::log::StorageId;
use super::tensor::Tensor;

/// An attribute of a module that each forward sets anew (`self.x = x`), freeing the tensor of the forward before.
///
/// The first forward of a run finds nothing to free. Its steps are recorded once, so the place is noted where every later
/// step frees the tensor of the step before it.
#[derive(Clone, Default)]
pub struct Kept {
    tensor: RefCell<Option<Tensor>>,
    first_set_at: Cell<usize>,
}

/// The place where steps after the first free a kept tensor of the step before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Number of events before it.
    pub at: usize,
    /// The storage that a step leaves, and the next one frees.
    pub storage: StorageId,
}

impl Kept {
    /// Sets the attribute.
    pub fn set(&self, t: &Tape, tensor: Tensor) {
        let before = self.tensor.replace(Some(tensor));
        if before.is_none() {
            self.first_set_at.set(t.mark());
        }
    }

    /// The place where later steps free what this one leaves, if the attribute was set.
    pub fn replaced(&self) -> Option<Replaced> {
        let storage = self.tensor.borrow().as_ref()?.storage().id()?;
        Some(Replaced {
            at: self.first_set_at.get(),
            storage,
        })
    }

    /// The attribute, if it was set.
    pub fn tensor(&self) -> Option<Tensor> {
        self.tensor.borrow().clone()
    }

    /// Notes that the place where the attribute was first set is elsewhere now.
    pub fn move_to(&self, at: usize) {
        self.first_set_at.set(at);
    }

    /// Makes the attribute's memory that of another storage, which a repetition left ([`Tape::repeat_part`]).
    pub fn renumber(&self, storage: StorageId) {
        if let Some(tensor) = &*self.tensor.borrow() {
            tensor.storage().renumber(storage);
        }
    }
}
