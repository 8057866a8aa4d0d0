//! The tape's log: allocations and frees of storages, and their descriptions.

use super::allocations::Allocations;
use super::dims::Dims;
use super::kind::{Component, Kind};
use super::why::Why;
use crate::dtype::DType;

/// Index of a storage in the order of allocation.
pub type StorageId = u32;

/// Index of a module in the tree of scopes.
pub type ScopeId = u32;

/// One allocation or free of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event(u32);

impl Event {
    /// Allocation of the storage.
    pub const fn alloc(id: StorageId) -> Self {
        Self(id << 1)
    }

    /// Free of the storage.
    pub const fn free(id: StorageId) -> Self {
        Self(id << 1 | 1)
    }

    /// Returns the same event, but of another storage.
    pub const fn renamed(self, id: StorageId) -> Self {
        Self(id << 1 | self.0 & 1)
    }

    /// Storage of the event.
    pub const fn storage(self) -> StorageId {
        self.0 >> 1
    }

    /// Returns true for an allocation, false for a free.
    pub const fn is_alloc(self) -> bool {
        self.0 & 1 == 0
    }
}

/// Description of a storage, as its first tensor sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allocation {
    /// Bytes requested from the allocator.
    pub bytes: u64,
    /// Shape in elements.
    pub shape: Dims,
    /// Element type.
    pub dtype: DType,
    /// The operation that made it, or the parameter's name.
    pub name: &'static str,
    /// The module that made it.
    pub scope: ScopeId,
    /// Purpose of the memory.
    pub kind: Kind,
    /// Reason that it is live.
    pub why: Why,
}

/// Name of a storage that stands for those of many tensors: of the segments of a sequence that attention treats apart
/// (`ops/segments`), not of segments of the allocator.
pub(super) const LUMP: &str = "segments";

impl Allocation {
    /// Returns true if the storage stands for many tensors, each of the small pool.
    pub fn is_lump(&self) -> bool {
        self.name == LUMP
    }
}

/// A module: a node of the tree that names layers.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The module around it; the root is its own parent.
    pub parent: ScopeId,
    /// Attribute name in its parent.
    pub name: &'static str,
    /// Position within a list of modules.
    pub index: Option<u32>,
    /// Part of the model that it belongs to.
    pub component: Component,
}

/// Number of storages for which a log has room at first: those of a large run.
pub const ROOM: usize = 1 << 17;

/// Length of a long module path in bytes; few are longer.
const LONG_PATH: usize = 64;

/// Log of a tape.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Allocations and frees, in order.
    pub events: Vec<Event>,
    /// Descriptions of the storages.
    pub allocations: Allocations,
    /// Modules; the first is the root.
    pub scopes: Vec<Scope>,
}

/// A position in a log, to which it can be rewound.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogMark {
    events: usize,
    /// Numbers of storages and of their descriptions.
    allocations: [usize; 2],
    scopes: usize,
}

impl Log {
    /// Reserves memory for [`ROOM`] storages.
    pub(super) fn make_room(&mut self) {
        self.events.reserve(2 * ROOM);
        self.allocations.make_room(ROOM);
    }

    /// Current position.
    pub(super) fn mark(&self) -> LogMark {
        LogMark {
            events: self.events.len(),
            allocations: self.allocations.mark(),
            scopes: self.scopes.len(),
        }
    }

    /// Removes everything after a mark.
    pub(super) fn rewind(&mut self, mark: &LogMark) {
        self.events.truncate(mark.events);
        self.allocations.rewind(mark.allocations);
        self.scopes.truncate(mark.scopes);
    }

    /// Adds an allocation, and returns its storage.
    pub(super) fn born(&mut self, allocation: Allocation) -> StorageId {
        let id = self.allocations.push(allocation);
        self.events.push(Event::alloc(id));
        id
    }

    /// Dotted path of a module, such as `model.layers.3.mlp`.
    pub fn path(&self, scope: ScopeId) -> String {
        let node = self.scopes[scope as usize];
        if node.parent == scope {
            return String::with_capacity(LONG_PATH);
        }
        let mut path = self.path(node.parent);
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(node.name);
        if let Some(i) = node.index {
            path.push('.');
            path.push_str(&i.to_string());
        }
        path
    }
}
