//! Places of storages and modules: the part of a pass that made them.

use std::cell::RefCell;

use super::super::kind::Kind;
use super::super::log::{Log, ScopeId, StorageId};
use super::super::stack::Position;
use super::parts::{Part, Parts};

/// An instance of a part in the whole pass: the part's index in the recording, and the index in the stack of the layer
/// that it is written for (0 between layers). One part of the recording has as many instances as its layer stands for.
pub type Instance = (usize, usize);

/// Stands for the rank of a library's workspace, which is made once, no matter which layer uses it first.
const WORKSPACE: u32 = u32::MAX;

/// Place of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is older than the pass.
    Before,
    /// It is a workspace that the pass made.
    Workspace,
    /// The storage of this rank among those that a part made.
    Made(Instance, u32),
}

/// Parts that made the storages and modules of a pass.
pub struct Places<'a> {
    pub parts: &'a Parts,
    begin: Position,
    /// For each storage of the pass, the part that made it, and its rank there.
    homes: Vec<(u32, u32)>,
    /// For each part the request and the name of each storage that it made, without workspaces.
    made: Vec<Vec<(u64, &'static str)>>,
    /// Pairs of parts that were compared, and if they make the same storages and as many modules.
    compared: RefCell<Vec<(usize, usize, bool)>>,
}

impl<'a> Places<'a> {
    /// Notes which part of the pass made which storage.
    pub fn new(log: &Log, parts: &'a Parts, begin: Position) -> Self {
        let mut homes = Vec::with_capacity(log.allocations.len() - begin.storage);
        let mut made = Vec::with_capacity(parts.parts.len());
        for (at, part) in parts.parts.iter().enumerate() {
            let mut own = Vec::with_capacity(part.to.storage - part.from.storage);
            for id in part.from.storage..part.to.storage {
                let allocation = &log.allocations[id];
                if allocation.kind == Kind::Workspace {
                    homes.push((at as u32, WORKSPACE));
                } else {
                    homes.push((at as u32, own.len() as u32));
                    own.push((allocation.bytes, allocation.name));
                }
            }
            made.push(own);
        }
        Self {
            parts,
            begin,
            homes,
            made,
            compared: RefCell::default(),
        }
    }

    /// The part of this index.
    pub fn part(&self, at: usize) -> &'a Part {
        &self.parts.parts[at]
    }

    /// Index in its stack of the layer that ran as this part; 0 for what lies between layers.
    pub fn own_layer(&self, at: usize) -> usize {
        let layer = self.part(at).layer;
        layer.map_or(0, |layer| self.parts.stacks[layer.stack].runs[layer.run])
    }

    /// Returns true if the layer of this part stands for others too.
    pub fn is_repeated(&self, at: usize) -> bool {
        let layer = self.part(at).layer;
        layer.is_some_and(|layer| !self.parts.stacks[layer.stack].is_single(layer.run))
    }

    /// Number of instances that this part may have.
    pub fn instances(&self, at: usize) -> usize {
        let layer = self.part(at).layer;
        layer.map_or(1, |layer| self.parts.stacks[layer.stack].representatives.len())
    }

    /// The part that made a storage of the pass, and the storage's rank there; `None` for older ones and workspaces.
    pub fn home(&self, id: StorageId) -> Option<(usize, u32)> {
        let &(home, rank) = self.homes.get((id as usize).checked_sub(self.begin.storage)?)?;
        (rank != WORKSPACE).then_some((home as usize, rank))
    }

    /// Name of the storage of this rank that a part made.
    pub fn name(&self, home: usize, rank: u32) -> &'static str {
        self.made[home][rank as usize].1
    }

    /// Place of what is the storage `id` in the recording, seen from an instance. `None` if it does not follow from the
    /// recording.
    pub fn place(&self, instance: Instance, id: StorageId) -> Option<Place> {
        let Some(number) = (id as usize).checked_sub(self.begin.storage) else {
            return Some(Place::Before);
        };
        let (home, rank) = self.homes[number];
        if rank == WORKSPACE {
            return Some(Place::Workspace);
        }
        Some(Place::Made(self.beside(instance, home as usize)?, rank))
    }

    /// The part that made a module of the pass; `None` for older ones.
    pub fn home_of_scope(&self, scope: ScopeId) -> Option<usize> {
        let scope = scope as usize;
        (scope >= self.begin.scope).then(|| self.parts.parts.partition_point(|part| part.to.scope <= scope))
    }

    /// The instance that is to `instance` what the part `home` is to it in the recording: of the same layer or of one
    /// beside it.
    pub fn beside(&self, (at, layer): Instance, home: usize) -> Option<Instance> {
        if home == at {
            return Some((at, layer));
        }
        // Between layers there is one instance, whoever looks at it.
        let Some(of) = self.part(home).layer else {
            return Some((home, 0));
        };
        let layers = &self.parts.stacks[of.stack];
        let Some(own) = self.part(at).layer.filter(|own| own.stack == of.stack) else {
            // Seen from another stack or from between layers, a layer that stands for several could be any of them.
            return layers.is_single(of.run).then(|| (home, layers.runs[of.run]));
        };
        // Of two layers that ran one after the other, each has the kind of the other's neighbour in the stack
        // (`tape/stack.rs` chooses them so): what one made for the other, the neighbour makes too. Of two further apart the
        // recording does not say how many layers lie between them.
        if of.run.abs_diff(own.run) > 1 {
            return None;
        }
        let layer = (layer + of.run).checked_sub(own.run)?;
        let part = layers.part(of.backward, *layers.representatives.get(layer)?)?;
        // The neighbour may have been run by another layer than the one in the recording. Ranks of storages carry over only
        // if both make the same ones in the same order.
        self.are_alike(home, part).then_some((part, layer))
    }

    /// Returns true if both parts make the same storages and as many modules.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        if one == other {
            return true;
        }
        let mut compared = self.compared.borrow_mut();
        if let Some((.., alike)) = compared.iter().find(|(a, b, _)| (*a, *b) == (one, other)) {
            return *alike;
        }
        let modules = |at: usize| self.part(at).to.scope - self.part(at).from.scope;
        let alike = self.made[one] == self.made[other] && modules(one) == modules(other);
        compared.push((one, other, alike));
        alike
    }

    /// Returns true if this instance makes a workspace that was made in its part: the first instance to use it. `None`
    /// if another layer might have used it before.
    pub fn makes_workspace(&self, (at, layer): Instance) -> Option<bool> {
        let Some(own) = self.part(at).layer else {
            return Some(true);
        };
        let layers = &self.parts.stacks[own.stack];
        // Forward comes to the lowest layer first, which is the one that ran; backward to the highest that it stands for.
        if !own.backward {
            return Some(layer == layers.runs[own.run]);
        }
        let last = layers.last[own.run];
        let is_first = layers.last[..own.run].iter().all(|&other| other < last);
        is_first.then_some(layer == last)
    }

    /// Returns true if this instance frees what its part freed of storages that its stack did not make: the last
    /// instance to use them. `None` if another layer might use them later.
    pub fn frees_of_others(&self, (at, layer): Instance) -> Option<bool> {
        let Some(own) = self.part(at).layer else {
            return Some(true);
        };
        let layers = &self.parts.stacks[own.stack];
        let run = layers.runs[own.run];
        if own.backward {
            // The last layer that backward comes to is the first of the stack, of those for which one stands too.
            return Some(layer == run);
        }
        let is_last = layers.is_single(own.run) && layers.last[..own.run].iter().all(|&other| other < run);
        is_last.then_some(true)
    }

    /// Returns true if the storage was made by the stack of this part's layer.
    pub fn is_of_own_stack(&self, at: usize, id: StorageId) -> bool {
        let home = self.home(id).and_then(|(home, _)| self.part(home).layer);
        home.map(|layer| layer.stack) == self.part(at).layer.map(|layer| layer.stack)
    }
}
