//! Cutting and merging the blocks of a segment, and caching them.

use super::arena::{BlockState, NONE, Node};
use super::caching::{Block, CachingAllocator};
use super::segment_source::SegmentSource;
use super::size::{MIN_BLOCK, PoolKind, SMALL_SIZE};
use crate::units::Bytes;

impl<S: SegmentSource> CachingAllocator<S> {
    /// Makes a block live, cut to `size` where that is worth it (`alloc_found_block`).
    #[inline]
    pub(super) fn hand_out(&mut self, id: u32, size: u64) -> Block {
        if self.should_split(id, size) {
            let rest = self.cut(id, size);
            self.cache(rest);
        }
        let node = &mut self.blocks[id];
        node.state = BlockState::Allocated;
        self.allocated += node.size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        Block(id)
    }

    /// Whether the rest of a block that serves `size` bytes is worth a block of its own
    /// (`should_split`).
    #[inline]
    pub(super) fn should_split(&self, id: u32, size: u64) -> bool {
        let remaining = self.blocks[id].size - size;
        if self.blocks[id].kind == PoolKind::Small || self.options.expandable_segments {
            remaining >= MIN_BLOCK
        } else {
            remaining > SMALL_SIZE && self.options.max_split_size.map(Bytes::get).is_none_or(|max| size < max)
        }
    }

    /// Cuts a block to its first `size` bytes; the rest is a new block behind it, in no pool.
    #[inline]
    pub(super) fn cut(&mut self, id: u32, size: u64) -> u32 {
        let node = &mut self.blocks[id];
        let next = node.next;
        let rest = Node {
            address: node.address.wrapping_add(size),
            size: node.size - size,
            prev: id,
            next,
            pool: node.pool,
            range: node.range,
            cached_at: node.cached_at,
            state: node.state,
            kind: node.kind,
        };
        node.size = size;
        let rest = self.blocks.insert(rest);
        self.blocks[id].next = rest;
        if next != NONE {
            self.blocks[next].prev = rest;
        }
        rest
    }

    /// Takes in both neighbours where they are in the same state.
    #[inline]
    pub(super) fn merge_with_neighbours(&mut self, id: u32) {
        // One at a time: a load of both would wait for the stores that have just set them.
        self.merge(id, self.blocks[id].prev);
        self.merge(id, self.blocks[id].next);
    }

    /// Takes in the neighbour `other` if it is in the same state: both free or both unmapped
    /// (`try_merge_blocks`).
    #[inline]
    fn merge(&mut self, id: u32, other: u32) {
        if other == NONE || self.blocks[other].state != self.blocks[id].state {
            return;
        }
        if self.blocks[other].state == BlockState::Unmapped {
            self.forget_unmapped(other);
        } else {
            self.uncache(other);
        }
        let Node { address, size, .. } = self.blocks[other];
        let node = &mut self.blocks[id];
        node.size += size;
        if node.prev == other {
            node.address = address;
            let next = node.next;
            self.blocks.splice(self.blocks[other].prev, id, next);
        } else {
            let prev = node.prev;
            self.blocks.splice(prev, id, self.blocks[other].next);
        }
        self.blocks.remove(other);
    }

    /// Puts a block into its pool (`BlockPool::insert_into_blocks`).
    #[inline]
    pub(super) fn cache(&mut self, id: u32) {
        let node = &mut self.blocks[id];
        node.state = BlockState::Free;
        node.cached_at = self.searches[node.kind as usize];
        self.pools[node.pool as usize].insert(node.size, node.address, id);
    }

    /// Takes a block out of its pool.
    #[inline]
    pub(super) fn uncache(&mut self, id: u32) {
        let node = &self.blocks[id];
        self.pools[node.pool as usize].remove(node.size, node.address);
    }
}
