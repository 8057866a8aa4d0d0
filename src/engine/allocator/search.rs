//! Finds a block for a request: from the cache, from a new segment, or out of memory.

use super::arena::{BlockState, NONE, Node};
use super::caching::{CachingAllocator, Request};
use super::error::OutOfMemory;
use super::segment_source::SegmentSource;
use super::size::{PoolKind, segment_size};
use crate::units::Bytes;

impl<S: SegmentSource> CachingAllocator<S> {
    /// Takes a cached block for the request out of its pool (`get_free_block`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn take_cached(&mut self, request: Request) -> Option<u32> {
        let searches = &mut self.searches[request.kind as usize];
        *searches = searches.wrapping_add(1);
        if self.plain_search {
            self.pools[request.pool as usize].take_best_fit(&mut self.blocks, request.size)
        } else {
            self.take_cached_with_options(request)
        }
    }

    /// [`Self::take_cached`] under `expandable_segments` or `max_split_size`.
    fn take_cached_with_options(&mut self, request: Request) -> Option<u32> {
        let id = if self.options.expandable_segments {
            self.best_expandable_fit(request)?
        } else {
            self.pools[request.pool as usize].best_fit(&self.blocks, request.size)?
        };
        // `get_free_block` looks at the best fit alone: no smaller block would serve the request, and a larger one is
        // oversize too.
        if self.blocks[id].size >= self.oversize_for(request) {
            return None;
        }
        self.uncache(id);
        Some(id)
    }

    /// Size from which a cached block is too large for the request: an oversize block serves only large requests, and
    /// of those only the ones near its size.
    fn oversize_for(&self, request: Request) -> u64 {
        match self.options.max_split_size.map(Bytes::get) {
            None => u64::MAX,
            Some(max_split) if request.size < max_split => max_split,
            Some(_) => request.size.saturating_add(self.options.max_non_split_rounding.get()),
        }
    }

    /// Takes a block from newly reserved memory, after releasing as much of the cache as needed (`malloc`); blocks of
    /// the small pools are live already.
    #[cold]
    pub(super) fn take_new(&mut self, request: Request) -> Result<u32, OutOfMemory> {
        // The order is `malloc`'s, each step only after the one before has failed (`c10/cuda/CUDACachingAllocator.cpp`). To
        // empty the cache any earlier would return segments that PyTorch keeps, so that reserved bytes and the retries that
        // users see in `memory_stats` would be wrong from there on.
        self.collect_garbage();
        if let Some(id) = self.reserve(request) {
            return Ok(id);
        }
        if self.release_available(request)
            && let Some(id) = self.reserve(request)
        {
            return Ok(id);
        }
        // Only this step counts as a retry: the allocation that follows it is the one that `isRetry` marks.
        self.empty_cache();
        self.num_alloc_retries += 1;
        self.reserve(request).ok_or_else(|| self.out_of_memory(request))
    }

    fn out_of_memory(&self, request: Request) -> OutOfMemory {
        let limits = self.options.limit.into_iter().chain(self.options.capacity);
        OutOfMemory {
            requested: Bytes::new(segment_size(request.size)),
            allocated: self.allocated(),
            reserved: self.reserved(),
            limit: limits.min().unwrap_or(Bytes::new(ADDRESS_SPACE)),
        }
    }

    /// Takes a block in no pool from newly reserved memory; blocks of the small pools are live already. `None` if the
    /// memory may not or cannot be reserved (`alloc_block`).
    fn reserve(&mut self, request: Request) -> Option<u32> {
        let size = segment_size(request.size);
        if self
            .options
            .limit
            .is_some_and(|limit| self.reserved + size > limit.get())
        {
            return None;
        }
        if self.options.expandable_segments {
            self.grow(request)
        } else {
            self.add_segment(request, size)
        }
    }

    /// Makes a `cudaMalloc` segment of `size` bytes; in the small pools, returns the block split from it.
    fn add_segment(&mut self, request: Request, size: u64) -> Option<u32> {
        if !self.driver_has(size) {
            return None;
        }
        let address = self.source.reserve(size);
        self.count_reserved(request.kind, size);
        if self.is_of_small_pools(request.size) {
            let stream = request.pool as usize / 2;
            return Some(self.small.take_new(stream, address, request.size));
        }
        Some(self.blocks.insert(Node {
            address,
            size,
            prev: NONE,
            next: NONE,
            before: NONE,
            after: NONE,
            pool: request.pool,
            range: NONE,
            cached_at: 0,
            state: BlockState::Free,
            kind: request.kind,
        }))
    }

    /// Returns true if the driver can hand out `size` bytes more.
    pub(super) fn driver_has(&self, size: u64) -> bool {
        let capacity = self.options.capacity.map_or(ADDRESS_SPACE, Bytes::get);
        self.reserved + size <= capacity.min(ADDRESS_SPACE)
    }

    pub(super) fn count_reserved(&mut self, kind: PoolKind, size: u64) {
        self.reserved += size;
        if kind == PoolKind::Small {
            self.reserved_small += size;
        }
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }
}

/// More than any device has: half of what a process on Linux can address.
const ADDRESS_SPACE: u64 = 1 << 46;
