//! Blocks of the allocator, kept in one vector and linked by id.

use super::size::PoolKind;

/// No block: the end of a segment's chain.
pub(super) const NONE: u32 = u32::MAX;

/// State of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Cached: waits in a pool for a request.
    Free,
    /// Live: counts in the allocated bytes.
    Allocated,
    /// Freed by its owner, still in use by another stream (`event_count > 0`).
    AwaitingFree,
    /// Virtual addresses of an expandable segment without memory behind them.
    Unmapped,
}

/// A contiguous part of one segment, linked to its neighbours (`struct Block`).
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub address: u64,
    pub size: u64,
    /// Neighbours in the segment.
    pub prev: u32,
    pub next: u32,
    /// Neighbours in the bin of cached blocks; meaningless while the block is in none.
    pub before: u32,
    pub after: u32,
    /// Index of the pool that it returns to.
    pub pool: u32,
    /// Index of its expandable segment, or [`NONE`].
    pub range: u32,
    /// Searches of pools of its kind up to the moment it was cached (`gc_count_base`).
    pub cached_at: u32,
    pub state: BlockState,
    pub kind: PoolKind,
}

impl Node {
    /// Returns true if its segment holds other blocks too.
    pub fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// All blocks of an allocator; ids of removed blocks are reused.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
}

impl Arena {
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn insert(&mut self, node: Node) -> u32 {
        if let Some(id) = self.vacant.pop() {
            self.nodes[id as usize] = node;
            id
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        }
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn remove(&mut self, id: u32) {
        self.nodes[id as usize].size = 0;
        self.vacant.push(id);
    }

    /// All blocks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.size > 0)
            .map(|(id, node)| (id as u32, node))
    }

    /// Links `id` between two neighbours in a bin.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn link(&mut self, before: u32, id: u32, after: u32) {
        if before != NONE {
            self[before].after = id;
        }
        if after != NONE {
            self[after].before = id;
        }
        let node = &mut self[id];
        (node.before, node.after) = (before, after);
    }
}

impl std::ops::Index<u32> for Arena {
    type Output = Node;
    #[inline]
    fn index(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Arena {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }
}
