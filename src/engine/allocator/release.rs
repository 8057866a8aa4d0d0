//! Releases cached segments to the driver.

use super::arena::{NONE, Node};
use super::caching::{CachingAllocator, Request};
use super::segment_source::SegmentSource;
use super::size::{PoolKind, SMALL_SEGMENT};

impl<S: SegmentSource> CachingAllocator<S> {
    /// `torch.cuda.empty_cache`: releases every segment without a live block (`release_cached_blocks`).
    pub fn empty_cache(&mut self) {
        for kind in [PoolKind::Large, PoolKind::Small] {
            for pool in self.pools_of(kind) {
                // Collected first, as in `release_blocks`: unmapping puts what is left of a block back into this pool.
                let cached: Vec<u32> = self.pools[pool].iter(&self.blocks).collect();
                for id in cached {
                    self.release_or_unmap(id);
                }
            }
        }
        while let Some(address) = self.small.release_one() {
            self.give_back(PoolKind::Small, address, SMALL_SEGMENT);
        }
    }

    /// Releases a cached block as `release_blocks` does: frees a whole segment, unmaps as much as possible of an
    /// expandable one.
    fn release_or_unmap(&mut self, id: u32) {
        if self.blocks[id].range != NONE {
            self.unmap(id);
        } else {
            self.release_if_whole(id);
        }
    }

    /// Releases the segment of `size` bytes at `address`; returns false if there is none without a live block.
    pub(super) fn release_segment(&mut self, address: u64, size: u64) -> bool {
        let id = self.cached().find(|&id| {
            let node = &self.blocks[id];
            (node.address, node.size) == (address, size)
        });
        if let Some(id) = id {
            return self.release_if_whole(id);
        }
        let is_small = size == SMALL_SEGMENT && self.small.release(address);
        if is_small {
            self.give_back(PoolKind::Small, address, size);
        }
        is_small
    }

    /// Unmaps `size` bytes from `address` on, which a cached block must cover; returns true if exactly these were
    /// unmapped.
    pub(super) fn unmap_segment(&mut self, address: u64, size: u64) -> bool {
        let end = address.saturating_add(size);
        let holds = |node: &Node| node.address <= address && end <= node.address.saturating_add(node.size);
        let id = self.cached().find(|&id| {
            let node = &self.blocks[id];
            node.range != NONE && holds(node)
        });
        id.is_some_and(|id| self.unmap(id) == (address, size))
    }

    /// All cached blocks of the general pools.
    fn cached(&self) -> impl Iterator<Item = u32> {
        self.pools.iter().flat_map(|pool| pool.iter(&self.blocks))
    }

    /// Under `max_split_size`, releases oversize blocks, just enough for the request; returns true if that was enough
    /// (`release_available_cached_blocks`).
    pub(super) fn release_available(&mut self, request: Request) -> bool {
        let Some(max_split) = self.options.max_split_size.map(|max| max.get()) else {
            return false;
        };
        // Only oversize blocks are released here: they are never split, so that each is a whole segment.
        let wanted = request.size.max(max_split);
        let pool = &self.pools[request.pool as usize];
        let fitting = pool.best_fit(&self.blocks, wanted);
        let oversize: Vec<u32> = pool.at_least(&self.blocks, max_split).collect();
        if let Some(id) = fitting {
            return self.release_if_whole(id);
        }
        let mut released = 0;
        for id in oversize.into_iter().rev() {
            if released >= wanted {
                break;
            }
            released += self.blocks[id].size;
            self.release_if_whole(id);
        }
        released >= wanted
    }

    /// Under `garbage_collection_threshold`, releases the segments that have been cached longest until the reserved
    /// bytes are below the threshold (`garbage_collect_cached_blocks`).
    pub(super) fn collect_garbage(&mut self) {
        let share = self.options.garbage_collection_threshold;
        let Some(limit) = self.options.limit.filter(|_| share > 0.0) else {
            return;
        };
        let threshold = (share * limit.get() as f64) as u64;
        let mut excess = self.reserved.saturating_sub(threshold);
        let mut candidates: Vec<(u32, u64)> = self
            .pools_of(PoolKind::Large)
            .flat_map(|pool| self.whole_segments(pool))
            .map(|id| (id, self.age(id)))
            .collect();
        // Each round releases every segment of at least the mean age, even if the first would do: PyTorch goes past the
        // target so that the next request does not collect again. Segments that are as young as those in use stay for
        // last.
        while excess > 0 && !candidates.is_empty() {
            let total: u64 = candidates.iter().map(|(_, age)| age).sum();
            let mean = total as f64 / candidates.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|&(_, age)| age as f64 >= mean);
            for (id, _) in old {
                excess = excess.saturating_sub(self.blocks[id].size);
                self.release(id);
            }
            candidates = young;
        }
    }

    /// Searches of the block's pools since it was cached (`gc_count`).
    fn age(&self, id: u32) -> u64 {
        let Node { cached_at, kind, .. } = self.blocks[id];
        u64::from(self.searches[kind as usize].wrapping_sub(cached_at))
    }

    /// Indices of one kind's pools, one per stream.
    fn pools_of(&self, kind: PoolKind) -> impl Iterator<Item = usize> + use<S> {
        (kind as usize..self.pools.len()).step_by(2)
    }

    /// Cached blocks of a pool that are each a whole `cudaMalloc` segment.
    fn whole_segments(&self, pool: usize) -> Vec<u32> {
        self.pools[pool]
            .iter(&self.blocks)
            .filter(|&id| self.is_whole_segment(id))
            .collect()
    }

    fn is_whole_segment(&self, id: u32) -> bool {
        let node = &self.blocks[id];
        node.range == NONE && !node.is_split()
    }

    fn release_if_whole(&mut self, id: u32) -> bool {
        let whole = self.is_whole_segment(id);
        if whole {
            self.release(id);
        }
        whole
    }

    /// Releases one segment (`release_block`).
    fn release(&mut self, id: u32) {
        self.uncache(id);
        let Node {
            address, size, kind, ..
        } = self.blocks[id];
        self.give_back(kind, address, size);
        self.blocks.remove(id);
    }

    /// Returns memory to the driver.
    fn give_back(&mut self, kind: PoolKind, address: u64, size: u64) {
        self.source.release(address, size);
        self.count_given_back(kind, size);
    }

    pub(super) fn count_given_back(&mut self, kind: PoolKind, size: u64) {
        self.reserved -= size;
        if kind == PoolKind::Small {
            self.reserved_small -= size;
        }
    }
}
