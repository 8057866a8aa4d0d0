//! Interface of the tape for recordings, whose operations ran elsewhere: allocations, frees and threads are given, and
//! the scratch memory within kernels comes from the operations here.

use super::core::Tape;
use super::dims::Dims;
use super::kind::{Component, Kind};
use super::log::{Scope, ScopeId};
use super::storage::Storage;
use super::tensor::Tensor;
use super::why::Why;
use super::workspace::WorkspaceSizes;
use crate::dtype::DType;

impl Tape {
    /// Sets the sizes of workspaces.
    pub(crate) fn set_workspace_sizes(&self, sizes: WorkspaceSizes) {
        self.0.workspace_sizes.set(sizes);
    }

    /// Runs `f` on autograd's thread or the script's, on a CUDA stream.
    pub(crate) fn on_thread<R>(&self, backward: bool, stream: u32, f: impl FnOnce() -> R) -> R {
        let before = (self.0.in_backward.replace(backward), self.0.stream.replace(stream));
        let result = f();
        self.0.in_backward.set(before.0);
        self.0.stream.set(before.1);
        result
    }

    /// Frees the libraries' workspaces (`torch._C._cuda_clearCublasWorkspaces`).
    pub(crate) fn clear_workspaces(&self) {
        self.0.workspaces.borrow_mut().clear();
    }

    /// Adds a module by its parent and its name there.
    pub(crate) fn declare(&self, parent: ScopeId, name: &'static str) -> ScopeId {
        let mut log = self.0.log.borrow_mut();
        log.scopes.push(Scope {
            parent,
            name,
            index: None,
            component: Component::Run,
        });
        (log.scopes.len() - 1) as ScopeId
    }

    /// Allocates `bytes` bytes, which their first tensor sees in this shape.
    pub(crate) fn allocate_storage(&self, bytes: u64, (shape, dtype): (Dims, DType), name: &'static str) -> Storage {
        self.storage_of_bytes(bytes, &shape, dtype, name, Kind::Temporary)
    }

    /// Makes a tensor that views a storage.
    pub(crate) fn view_of(&self, storage: &Storage, (shape, strides): (Dims, Dims), dtype: DType) -> Tensor {
        Tensor::from_parts(storage.clone(), shape, strides, dtype, None)
    }

    /// Number of storages so far.
    pub(crate) fn storage_count(&self) -> usize {
        self.allocations()
    }

    /// Renames a storage, as a part of a module.
    pub(crate) fn rename(&self, storage: &Storage, name: &'static str, scope: ScopeId) {
        if let Some(id) = storage.id() {
            let mut log = self.0.log.borrow_mut();
            let allocation = log.allocations.own(id);
            (allocation.name, allocation.scope) = (name, scope);
        }
    }

    /// Current purpose of a storage, and the reason that it is live.
    pub(crate) fn kind_of(&self, storage: &Storage) -> Option<(Kind, Why)> {
        let id = storage.id()?;
        let log = self.0.log.borrow();
        let allocation = &log.allocations[id as usize];
        Some((allocation.kind, allocation.why))
    }
}
