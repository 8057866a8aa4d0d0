//! Adds memory to a recorded run.

use crate::dtype::DType;
use crate::tape::dims::Dims;
use crate::tape::log::{Allocation, Event, Log, ScopeId, StorageId};
use crate::tape::{Kind, Why};

/// A tensor that a strategy keeps and a single GPU does not.
pub(super) struct Piece {
    pub elements: u64,
    pub dtype: DType,
    pub name: &'static str,
    pub kind: Kind,
    /// The module that it belongs to.
    pub scope: ScopeId,
}

impl Piece {
    /// Adds the tensor to the log without allocating it yet.
    pub fn describe(&self, log: &mut Log) -> StorageId {
        log.allocations.push(Allocation {
            bytes: self.elements * self.dtype.width(),
            shape: Dims::new(&[self.elements]),
            dtype: self.dtype,
            name: self.name,
            scope: self.scope,
            kind: self.kind,
            why: match self.kind {
                Kind::Weight => Why::Parameter,
                Kind::Gradient => Why::Gradient,
                _ => Why::InUse,
            },
        })
    }
}

/// Elements of the largest shard of a tensor: its first dimension is cut (`torch.chunk`).
pub fn shard(shape: &Dims, world: u64) -> u64 {
    if shape.is_empty() {
        return shape.numel();
    }
    let first = shape[0].max(1);
    first.div_ceil(world) * (shape.numel() / first)
}

/// Allocations of all these storages.
pub(super) fn allocations(ids: &[StorageId]) -> impl Iterator<Item = Event> + '_ {
    ids.iter().map(|&id| Event::alloc(id))
}

/// Frees of all these storages.
pub(super) fn frees(ids: &[StorageId]) -> impl Iterator<Item = Event> + '_ {
    ids.iter().map(|&id| Event::free(id))
}
