//! Memory of tensors, freed with its last owner.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::core::Core;
use super::kind::Kind;
use super::log::{Event, StorageId};
use super::why::Why;

/// Memory that one or more tensors share; it is freed with its last owner.
#[derive(Clone)]
pub struct Storage(Rc<Owned>);

struct Owned {
    id: Cell<Option<StorageId>>,
    /// Additional storages that are freed with it.
    pieces: Option<Box<RefCell<Vec<StorageId>>>>,
    /// The owner of the memory, if it is lent.
    lender: RefCell<Option<Storage>>,
    core: Rc<Core>,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.lender.get_mut().is_some() {
            return;
        }
        if let Some(id) = self.id.get() {
            self.core.log.borrow_mut().events.push(Event::free(id));
        }
        if let Some(pieces) = &mut self.pieces {
            let frees = pieces.get_mut().drain(..).map(Event::free);
            self.core.log.borrow_mut().events.extend(frees);
        }
    }
}

impl Storage {
    /// Makes a storage of one piece of memory, or of none.
    pub(super) fn new(core: &Rc<Core>, id: Option<StorageId>) -> Self {
        Self(Rc::new(Owned {
            id: Cell::new(id),
            pieces: None,
            lender: RefCell::default(),
            core: core.clone(),
        }))
    }

    /// Makes an empty bundle: a storage of many pieces.
    pub(super) fn bundle(core: &Rc<Core>) -> Self {
        Self(Rc::new(Owned {
            id: Cell::new(None),
            pieces: Some(Box::default()),
            lender: RefCell::default(),
            core: core.clone(),
        }))
    }

    /// Returns true if exactly one tensor owns this memory.
    pub fn is_unique(&self) -> bool {
        Rc::strong_count(&self.0) == 1
    }

    /// Index in the order of allocation; `None` for empty memory.
    pub fn id(&self) -> Option<StorageId> {
        self.0.id.get()
    }

    /// Names the memory by another id, after the log was rewritten: a free must name the storage that the log has now. Records
    /// nothing.
    pub(super) fn renumber(&self, id: StorageId) {
        self.0.id.set(Some(id));
    }

    /// Frees the memory, which the storage has no longer.
    pub(super) fn give_up(&self) {
        if let Some(id) = self.0.id.take() {
            self.0.core.log.borrow_mut().events.push(Event::free(id));
        }
    }

    /// Leaves the storage without memory and records no free: its allocation was taken out of the log, and a free of it would
    /// free what was never allocated.
    pub(super) fn forget(&self) {
        self.0.id.set(None);
    }

    /// Frees the memory and takes that of `other`, which has none from now on.
    pub(super) fn take_over(&self, other: &Self) {
        self.give_up();
        self.0.id.set(other.0.id.take());
    }

    /// Takes the memory of `owner`, which both have from now on, until it is given back.
    pub(super) fn borrow(&self, owner: &Self) {
        self.0.id.set(owner.0.id.get());
        *self.0.lender.borrow_mut() = Some(owner.clone());
    }

    /// Gives back what was lent, which is freed unless its owner lives elsewhere too.
    pub(super) fn give_back(&self) {
        self.0.id.set(None);
        let lender = self.0.lender.borrow_mut().take();
        drop(lender);
    }

    /// The owner of the memory: another if it is lent.
    pub(super) fn owner(&self) -> Self {
        self.0.lender.borrow().as_ref().unwrap_or(self).clone()
    }

    /// Returns true if a library that splits parameters decides when the memory is there: it is lent, or there is none now.
    pub(super) fn is_managed(&self) -> bool {
        let is_absent = self.0.id.get().is_none() && self.0.pieces.is_none();
        is_absent || self.0.lender.borrow().is_some()
    }

    /// Returns true if both are the same memory.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Adds pieces of memory to a bundle.
    pub(super) fn put(&self, ids: impl Iterator<Item = StorageId>) {
        if let Some(pieces) = &self.0.pieces {
            pieces.borrow_mut().extend(ids);
        }
    }

    /// Takes the `n` last pieces out of a bundle without freeing them, replacing the contents of `taken`.
    pub(super) fn take(&self, n: usize, taken: &mut Vec<StorageId>) {
        taken.clear();
        if let Some(pieces) = &self.0.pieces {
            let mut pieces = pieces.borrow_mut();
            let kept = pieces.len().saturating_sub(n);
            taken.extend(pieces.drain(kept..));
        }
    }

    /// Sets the purpose of the memory, replacing an earlier, less specific one.
    pub fn classify(&self, kind: Kind, why: Why) {
        if let Some(id) = self.0.id.get() {
            let mut log = self.0.core.log.borrow_mut();
            let allocation = log.allocations.own(id);
            allocation.kind = kind;
            allocation.why = why;
        }
    }

    /// Marks the memory as kept for backward, unless it has a more lasting purpose.
    pub fn keep_for_backward(&self, why: Why) {
        if let Some(id) = self.0.id.get() {
            let mut log = self.0.core.log.borrow_mut();
            let allocation = log.allocations.own(id);
            if allocation.kind == Kind::Temporary {
                allocation.kind = Kind::Activation;
                allocation.why = why;
            }
        }
    }
}
