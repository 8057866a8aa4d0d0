//! Splitting and merging the blocks of a segment, and caching them.

use super::arena::{BlockState, NONE, Node};
use super::caching::{Block, CachingAllocator, Found};
use super::segment_source::SegmentSource;
use super::size::{MIN_BLOCK, PoolKind, SMALL_SIZE};
use crate::units::Bytes;

impl<S: SegmentSource> CachingAllocator<S> {
    /// Makes a block live, split at `size` if that is worth it (`alloc_found_block`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn hand_out(&mut self, id: u32, size: u64) -> Block {
        if self.should_split(id, size) {
            let rest = self.cut(id, size);
            self.cache(rest);
        }
        let node = &mut self.blocks[id];
        node.state = BlockState::Allocated;
        let size = node.size;
        self.count_allocated(size);
        Block::of(Found::General(id))
    }

    /// Bytes of a block that serves `size` bytes.
    pub(super) fn size_handed_out(&self, id: u32, size: u64) -> u64 {
        if self.should_split(id, size) {
            size
        } else {
            self.blocks[id].size
        }
    }

    /// Returns true if the rest of a block that serves `size` bytes is worth a block of its own (`should_split`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn should_split(&self, id: u32, size: u64) -> bool {
        let remaining = self.blocks[id].size - size;
        // No request of the large pool is 1 MiB or smaller, so a rest of that size could never serve one: it stays with
        // the block and counts as allocated. That is why `memory_allocated` of one run depends on which cached block
        // served a tensor.
        if self.blocks[id].kind == PoolKind::Small || self.options.expandable_segments {
            remaining >= MIN_BLOCK
        } else {
            remaining > SMALL_SIZE && self.options.max_split_size.map(Bytes::get).is_none_or(|max| size < max)
        }
    }

    /// Cuts a block to its first `size` bytes; the rest is a new block behind it, in no pool.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn cut(&mut self, id: u32, size: u64) -> u32 {
        let node = &mut self.blocks[id];
        let next = node.next;
        let rest = Node {
            address: node.address.wrapping_add(size),
            size: node.size - size,
            prev: id,
            next,
            before: NONE,
            after: NONE,
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

    /// Merges a block with those neighbours that are in its state: all free or all unmapped (`try_merge_blocks`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn merge_with_neighbours(&mut self, id: u32) {
        let Node { prev, next, state, .. } = self.blocks[id];
        if prev != NONE && self.blocks[prev].state == state {
            self.withdraw(prev);
            let Node {
                address,
                size,
                prev: start,
                ..
            } = self.blocks[prev];
            let node = &mut self.blocks[id];
            (node.address, node.prev) = (address, start);
            node.size += size;
            if start != NONE {
                self.blocks[start].next = id;
            }
            self.blocks.remove(prev);
        }
        if next != NONE && self.blocks[next].state == state {
            self.withdraw(next);
            let Node { size, next: end, .. } = self.blocks[next];
            let node = &mut self.blocks[id];
            node.next = end;
            node.size += size;
            if end != NONE {
                self.blocks[end].prev = id;
            }
            self.blocks.remove(next);
        }
    }

    /// Removes a block from the list of its state, cached or unmapped.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn withdraw(&mut self, id: u32) {
        if self.blocks[id].state == BlockState::Unmapped {
            self.forget_unmapped(id);
        } else {
            self.uncache(id);
        }
    }

    /// Puts a block into its pool (`BlockPool::insert_into_blocks`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn cache(&mut self, id: u32) {
        let node = &mut self.blocks[id];
        node.state = BlockState::Free;
        node.cached_at = self.searches[node.kind as usize];
        let pool = node.pool as usize;
        self.pools[pool].insert(&mut self.blocks, id);
    }

    /// Takes a block out of its pool.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn uncache(&mut self, id: u32) {
        let pool = self.blocks[id].pool as usize;
        self.pools[pool].remove(&mut self.blocks, id);
    }
}
