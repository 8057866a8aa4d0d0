//! What the tape writes down: births and deaths of tensors' memory, and marks between them.

use super::births::Births;
use super::dims::Dims;
use super::kind::{Component, Kind};
use super::why::Why;
use crate::dtype::DType;

/// Index of a storage in the order of birth.
pub type StorageId = u32;

/// Index of a module in the tree of scopes.
pub type ScopeId = u32;

/// One birth or death of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event(u32);

impl Event {
    /// The storage is born.
    pub const fn birth(id: StorageId) -> Self {
        Self(id << 1)
    }

    /// The storage dies.
    pub const fn death(id: StorageId) -> Self {
        Self(id << 1 | 1)
    }

    /// The same event of another storage.
    pub const fn renamed(self, id: StorageId) -> Self {
        Self(id << 1 | self.0 & 1)
    }

    /// Which storage.
    pub const fn storage(self) -> StorageId {
        self.0 >> 1
    }

    /// Whether it is born, or else dies.
    pub const fn is_birth(self) -> bool {
        self.0 & 1 == 0
    }
}

/// What a storage holds, as its first tensor sees it.
#[derive(Debug, Clone, Copy)]
pub struct Birth {
    /// Bytes asked of the allocator.
    pub bytes: u64,
    /// Shape in elements.
    pub shape: Dims,
    /// Element type.
    pub dtype: DType,
    /// The operation that made it, or the parameter's name.
    pub name: &'static str,
    /// The module that made it.
    pub scope: ScopeId,
    /// What it is for.
    pub kind: Kind,
    /// Why it lives.
    pub why: Why,
}

/// The name of memory that stands for that of many tensors.
pub(super) const LUMP: &str = "segments";

impl Birth {
    /// Whether it stands for many tensors, each of the small pool.
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
    /// The part of the model that it belongs to.
    pub component: Component,
}

/// Storages that are born and die in a large run; few have more.
pub const ROOM: usize = 1 << 17;

/// Few paths of modules are longer (bytes).
const LONG_PATH: usize = 64;

/// Everything that the tape wrote.
#[derive(Debug, Default)]
pub struct Log {
    /// Births and deaths, in order.
    pub events: Vec<Event>,
    /// What each storage is.
    pub births: Births,
    /// Modules; the first is the root.
    pub scopes: Vec<Scope>,
}

/// A place in a log, to which it can go back.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogMark {
    events: usize,
    births: [usize; 2],
    scopes: usize,
}

impl Log {
    /// Makes room for [`ROOM`].
    pub(super) fn make_room(&mut self) {
        self.events.reserve(2 * ROOM);
        self.births.make_room(ROOM);
    }

    /// Where it is.
    pub(super) fn mark(&self) -> LogMark {
        LogMark {
            events: self.events.len(),
            births: self.births.mark(),
            scopes: self.scopes.len(),
        }
    }

    /// Forgets what came after a mark.
    pub(super) fn rewind(&mut self, mark: &LogMark) {
        self.events.truncate(mark.events);
        self.births.rewind(mark.births);
        self.scopes.truncate(mark.scopes);
    }

    /// Notes a birth.
    pub(super) fn born(&mut self, birth: Birth) -> StorageId {
        let id = self.births.push(birth);
        self.events.push(Event::birth(id));
        id
    }

    /// The dotted path of a module, such as `model.layers.3.mlp`.
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
