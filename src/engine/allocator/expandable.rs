//! Expandable segments: one range of virtual addresses per pool and stream, mapped as it grows.

use super::arena::{BlockState, NONE, Node};
use super::caching::{CachingAllocator, Request};
use super::segment_source::SegmentSource;
use crate::units::Bytes;

/// The address space of one `ExpandableSegment`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub address: u64,
    pub granule: u64,
}

impl<S: SegmentSource> CachingAllocator<S> {
    /// Takes a cached block for the request out of its pool (the expandable part of `get_free_block`).
    ///
    /// The block at the end of a range counts as large as it can grow, so larger ones come first.
    pub(super) fn best_expandable_fit(&self, request: Request) -> Option<u32> {
        let mut fitting = self.pools[request.pool as usize].at_least(&self.blocks, request.size);
        let first = fitting.next()?;
        if self.expandable_size(first) == self.blocks[first].size {
            return Some(first);
        }
        // `get_free_block` goes on while the next block, with what it can grow by, is smaller than this one. The last
        // block of a range can grow by the rest of the address space, so any block that fits is preferred to it. Taken
        // by its present size it would often be the best fit, and the range would grow further than PyTorch's.
        let mut best = first;
        for id in fitting {
            if self.expandable_size(id) >= self.expandable_size(best) {
                break;
            }
            best = id;
        }
        Some(best)
    }

    /// Bytes of a block and of the unmapped addresses behind it.
    fn expandable_size(&self, id: u32) -> u64 {
        let Node { size, next, .. } = self.blocks[id];
        match next {
            NONE => size,
            next if self.blocks[next].state == BlockState::Unmapped => size + self.blocks[next].size,
            _ => size,
        }
    }

    /// Takes a block for the request out of its pool, made of newly mapped memory and the free memory before it; `None`
    /// if the driver has no more memory (`try_allocate_expandable_block`).
    pub(super) fn grow(&mut self, request: Request) -> Option<u32> {
        let mut id = self.growable(request);
        if self.blocks[id].state == BlockState::Unmapped {
            self.map(id, request.size)?;
        }
        while self.blocks[id].size < request.size {
            let missing = request.size - self.blocks[id].size;
            id = self.blocks[id].next;
            self.map(id, missing)?;
        }
        self.uncache(id);
        Some(id)
    }

    /// Finds the lowest run of free and unmapped blocks that can hold the request, and returns its first block
    /// (`find_expandable_block`).
    fn growable(&mut self, request: Request) -> u32 {
        let unmapped = &self.unmapped[request.pool as usize];
        // `unmapped` is sorted by address. A free block in front of unmapped memory is used too: a request that is
        // larger than it grows it, instead of mapping all of its bytes anew.
        let starts = unmapped.iter().map(|&id| match self.blocks[id].prev {
            prev if prev != NONE && self.blocks[prev].state == BlockState::Free => prev,
            _ => id,
        });
        starts
            .into_iter()
            .find(|&id| self.has_room(id, request.size))
            .unwrap_or_else(|| self.add_range(request))
    }

    /// Returns true if the free and unmapped blocks from `id` on hold `size` bytes.
    fn has_room(&self, mut id: u32, size: u64) -> bool {
        let mut room = 0;
        while room < size && id != NONE && matches!(self.blocks[id].state, BlockState::Free | BlockState::Unmapped) {
            room += self.blocks[id].size;
            id = self.blocks[id].next;
        }
        room >= size
    }

    /// Makes a new range of addresses, unmapped (`ExpandableSegment::ExpandableSegment`).
    fn add_range(&mut self, request: Request) -> u32 {
        let granule = request.kind.granule();
        let size = self.range_size().max(request.size).next_multiple_of(granule);
        let address = self.source.reserve_range(size);
        self.ranges.push(Range { address, granule });
        let id = self.blocks.insert(Node {
            address,
            size,
            prev: NONE,
            next: NONE,
            before: NONE,
            after: NONE,
            pool: request.pool,
            range: (self.ranges.len() - 1) as u32,
            cached_at: 0,
            state: BlockState::Unmapped,
            kind: request.kind,
        });
        self.note_unmapped(id);
        id
    }

    /// Bytes of address space per range: 9/8 of the card's memory, as PyTorch reserves, or more than any card has if
    /// that is unknown.
    fn range_size(&self) -> u64 {
        let card = self.options.capacity.or(self.options.limit).map_or(1 << 40, Bytes::get);
        card / 8 * 9
    }

    /// Maps the first `size` bytes of an unmapped block, or all of it, in whole granules, merges it with its free
    /// neighbours and caches it; `None` if the driver has no more memory (`map_block`).
    fn map(&mut self, id: u32, size: u64) -> Option<()> {
        let Node {
            address,
            size: unmapped,
            range,
            ..
        } = self.blocks[id];
        let size = size.min(unmapped).next_multiple_of(self.ranges[range as usize].granule);
        if !self.driver_has(size) {
            return None;
        }
        self.source.map(address, size);
        self.forget_unmapped(id);
        self.blocks[id].state = BlockState::Free;
        if size < unmapped {
            let rest = self.cut(id, size);
            self.blocks[rest].state = BlockState::Unmapped;
            self.note_unmapped(rest);
        }
        self.merge_with_neighbours(id);
        self.cache(id);
        self.count_reserved(self.blocks[id].kind, size);
        Some(())
    }

    /// Unmaps the whole granules of a cached block, and releases the range if nothing of it stays mapped; returns the
    /// address and bytes unmapped (`unmap_block`).
    pub(super) fn unmap(&mut self, id: u32) -> (u64, u64) {
        let Node {
            address, size, range, ..
        } = self.blocks[id];
        let Range { address: base, granule } = self.ranges[range as usize];
        // The driver maps whole granules (2 MiB, or 20 MiB for the large pool); a granule that a live tensor reaches
        // into stays mapped, and the rest of it stays cached.
        let start = base + (address - base).next_multiple_of(granule);
        let end = base + (address + size - base) / granule * granule;
        if start >= end {
            return (start, 0);
        }
        self.uncache(id);
        let id = self.isolate(id, start, end);
        self.blocks[id].state = BlockState::Unmapped;
        self.merge_with_neighbours(id);
        self.note_unmapped(id);
        self.count_given_back(self.blocks[id].kind, end - start);
        if !self.blocks[id].is_split() {
            self.release_range(id);
        }
        (start, end - start)
    }

    /// Splits a block so that one of its parts is from `start` to `end`, and caches the others.
    fn isolate(&mut self, id: u32, start: u64, end: u64) -> u32 {
        let Node { address, size, .. } = self.blocks[id];
        let mut middle = id;
        if start > address {
            middle = self.cut(id, start - address);
            self.cache(id);
        }
        if end < address + size {
            let after = self.cut(middle, end - start);
            self.cache(after);
        }
        middle
    }

    /// Releases the addresses of a range without mapped memory (`release_expandable_segment`).
    fn release_range(&mut self, id: u32) {
        self.forget_unmapped(id);
        let Node { address, size, .. } = self.blocks[id];
        self.source.release(address, size);
        self.blocks.remove(id);
    }

    fn note_unmapped(&mut self, id: u32) {
        let Node { address, pool, .. } = self.blocks[id];
        let at = self.unmapped[pool as usize].partition_point(|&other| self.blocks[other].address < address);
        self.unmapped[pool as usize].insert(at, id);
    }

    pub(super) fn forget_unmapped(&mut self, id: u32) {
        let pool = self.blocks[id].pool;
        self.unmapped[pool as usize].retain(|&other| other != id);
    }
}
