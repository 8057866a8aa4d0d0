//! Fast small pools, used if no option changes their search.

use super::arena::{BlockState, NONE};
use super::size::{MIN_BLOCK, SMALL_SEGMENT};
use super::small_bins::SmallBins;
use super::view::BlockView;

/// Units of 512 B in a segment, and so the sizes that a block can have.
pub(super) const UNITS: usize = (SMALL_SEGMENT / MIN_BLOCK) as usize;

/// The small pools of all streams: segments of 2 MiB, cut into blocks of whole units of 512 B.
///
/// Nine in ten requests of a training step are small. The rules are those of the general pools
/// ([`FreeBlocks`](super::free_blocks::FreeBlocks) and `chain.rs`), against which this is tested. It is faster because
/// small blocks are simple: each is split to the exact request, and there are so few sizes that each has a bin.
///
/// Tensors are freed in groups, and neighbours often together. So freed blocks wait until the next look into the cache,
/// and are then merged and cached a whole range at a time.
#[derive(Debug)]
pub(super) struct SmallPools {
    blocks: Vec<SmallBlock>,
    /// Blocks freed since the last look into the cache.
    freed: Vec<u32>,
    /// Head of the list of ids to reuse, linked by `next`.
    vacant: u32,
    /// One for each stream.
    pools: Vec<SmallBins>,
}

/// A contiguous part of one segment, linked to its neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallBlock {
    /// Device address.
    pub address: u64,
    /// Neighbours in the segment.
    prev: u32,
    next: u32,
    /// Neighbours in the bin; meaningless while the block is in none.
    pub before: u32,
    pub after: u32,
    /// Index of its stream.
    pool: u32,
    /// Size in units of 512 B; 0 if there is no such block.
    pub units: u16,
    state: SmallState,
}

/// State of a small block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmallState {
    /// Merged with its free neighbours, and cached.
    Cached,
    /// Freed, not merged or cached yet.
    Freed,
    Allocated,
    AwaitingFree,
    /// The id is unused.
    Gone,
}

impl SmallBlock {
    const fn size(&self) -> u64 {
        self.units as u64 * MIN_BLOCK
    }

    const fn is_head(&self) -> bool {
        self.units > 0 && self.prev == NONE
    }

    fn is_cached_segment(&self) -> bool {
        usize::from(self.units) == UNITS && self.state == SmallState::Cached
    }

    const fn view(&self) -> BlockView {
        BlockView {
            address: self.address,
            size: self.size(),
            state: match self.state {
                SmallState::Allocated => BlockState::Allocated,
                SmallState::AwaitingFree => BlockState::AwaitingFree,
                SmallState::Cached | SmallState::Freed | SmallState::Gone => BlockState::Free,
            },
        }
    }
}

impl Default for SmallPools {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            freed: Vec::new(),
            vacant: NONE,
            pools: Vec::new(),
        }
    }
}

impl SmallPools {
    /// Adds the pool of one more stream.
    pub fn add_pool(&mut self) {
        self.pools.push(SmallBins::default());
    }

    /// Takes a cached block of `bytes` bytes, a multiple of 512, as a live one, if there is one.
    #[inline(always)]
    pub fn take(&mut self, pool: usize, bytes: u64) -> Option<u32> {
        self.cache_freed();
        let units = units(bytes);
        let bins = &mut self.pools[pool];
        let id = bins.best_fit(&self.blocks, units)?;
        let found = &mut self.blocks[id as usize];
        if found.units == units {
            found.state = SmallState::Allocated;
            bins.remove(&mut self.blocks, id);
            return Some(id);
        }
        // The next request of the same kind is likely to split the remainder of a block again. Kept as the loose block, it
        // changes its size in place; in a bin, each split would move it to another one.
        if id != bins.loose {
            bins.remove_from_bin(&mut self.blocks, id);
            bins.insert(&mut self.blocks, id);
        }
        Some(self.cut_front(id, units))
    }

    /// Splits the first units off a cached block, as a live block.
    #[inline(always)]
    fn cut_front(&mut self, id: u32, units: u16) -> u32 {
        let front = self.vacant_id();
        let blocks = &mut self.blocks[..];
        let rest = &mut blocks[id as usize];
        let cut = SmallBlock {
            next: id,
            units,
            state: SmallState::Allocated,
            ..*rest
        };
        rest.address = rest.address.wrapping_add(u64::from(units) * MIN_BLOCK);
        rest.units -= units;
        rest.prev = front;
        if let Some(prev) = blocks.get_mut(cut.prev as usize) {
            prev.next = front;
        }
        blocks[front as usize] = cut;
        front
    }

    /// Returns true if a cached block serves `bytes` bytes.
    pub fn has(&mut self, pool: usize, bytes: u64) -> bool {
        self.cache_freed();
        self.find(pool, units(bytes)).is_some()
    }

    /// Finds the cached block that serves `units` units.
    #[inline(never)]
    fn find(&self, pool: usize, units: u16) -> Option<u32> {
        self.pools[pool].best_fit(&self.blocks, units)
    }

    /// Makes the first bytes of a new segment at this address live, for a request that no cached block serves.
    pub fn take_new(&mut self, pool: usize, address: u64, bytes: u64) -> u32 {
        let id = self.vacant_id();
        self.blocks[id as usize] = SmallBlock {
            address,
            pool: pool as u32,
            units: UNITS as u16,
            state: SmallState::Cached,
            ..NO_BLOCK
        };
        self.pools[pool].insert(&mut self.blocks, id);
        self.cut_front(id, units(bytes))
    }

    /// Bytes of a block.
    #[inline]
    pub fn size(&self, id: u32) -> u64 {
        self.blocks[id as usize].size()
    }

    /// Device address of a block.
    #[inline]
    pub fn address(&self, id: u32) -> u64 {
        self.blocks[id as usize].address
    }

    /// Frees a live block that no other stream uses, and returns its bytes.
    ///
    /// # Panics
    /// When the block is not live.
    #[inline(always)]
    pub fn free(&mut self, id: u32) -> u64 {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == SmallState::Allocated, "the block is not live");
        block.state = SmallState::Freed;
        self.freed.push(id);
        block.size()
    }

    /// Frees a live block that another stream may still use, and returns its bytes.
    ///
    /// # Panics
    /// When the block is not live.
    pub fn request_free(&mut self, id: u32) -> u64 {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == SmallState::Allocated, "the block is not live");
        block.state = SmallState::AwaitingFree;
        block.size()
    }

    /// Marks a block as freed once the last stream is done with it.
    ///
    /// # Panics
    /// When the block is not awaiting its free.
    pub fn complete_free(&mut self, id: u32) {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == SmallState::AwaitingFree, "the block was not let go of");
        block.state = SmallState::Freed;
        self.freed.push(id);
    }

    /// Merges and caches the freed blocks; every look into the cache calls this first.
    #[inline(always)]
    fn cache_freed(&mut self) {
        if !self.freed.is_empty() {
            self.cache_ranges();
        }
    }

    #[inline(never)]
    fn cache_ranges(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        for id in freed.drain(..) {
            // Otherwise the merge of a range before has taken it in.
            if self.blocks[id as usize].state == SmallState::Freed {
                self.cache_range(id);
            }
        }
        self.freed = freed;
    }

    /// Merges a block with all free ones around it and caches it.
    #[inline(always)]
    fn cache_range(&mut self, id: u32) {
        let blocks = &mut self.blocks[..];
        let bins = &mut self.pools[blocks[id as usize].pool as usize];
        let mut range = id;
        let SmallBlock {
            mut prev,
            mut next,
            mut units,
            ..
        } = blocks[id as usize];
        while let Some(&front) = blocks.get(prev as usize) {
            match front.state {
                SmallState::Freed => {}
                SmallState::Cached => bins.remove(blocks, prev),
                _ => break,
            }
            vacate(blocks, &mut self.vacant, range);
            units += front.units;
            (range, prev) = (prev, front.prev);
        }
        while let Some(&behind) = blocks.get(next as usize) {
            match behind.state {
                SmallState::Freed => {}
                SmallState::Cached => bins.remove(blocks, next),
                _ => {
                    blocks[next as usize].prev = range;
                    break;
                }
            }
            vacate(blocks, &mut self.vacant, next);
            units += behind.units;
            next = behind.next;
        }
        let block = &mut blocks[range as usize];
        (block.units, block.next, block.state) = (units, next, SmallState::Cached);
        bins.insert(blocks, range);
    }

    /// Releases the segment at this address; returns false if there is none without a live block.
    pub fn release(&mut self, address: u64) -> bool {
        self.cache_freed();
        let is_it = |block: &SmallBlock| block.is_cached_segment() && block.address == address;
        let id = self.blocks.iter().position(is_it);
        if let Some(id) = id {
            self.give_up(id as u32);
        }
        id.is_some()
    }

    /// Releases some segment without a live block, and returns its address.
    pub fn release_one(&mut self) -> Option<u64> {
        self.cache_freed();
        let id = (0..self.pools.len()).find_map(|pool| self.find(pool, UNITS as u16))?;
        let address = self.address(id);
        self.give_up(id);
        Some(address)
    }

    fn give_up(&mut self, id: u32) {
        let pool = self.blocks[id as usize].pool as usize;
        self.pools[pool].remove(&mut self.blocks, id);
        vacate(&mut self.blocks, &mut self.vacant, id);
    }

    /// Number of segments.
    pub fn count(&self) -> usize {
        self.blocks.iter().filter(|block| block.is_head()).count()
    }

    /// The segments, in no particular order: index of the stream, and the blocks by address.
    pub fn segments(&self) -> impl Iterator<Item = (usize, Vec<BlockView>)> {
        let heads = self.blocks.iter().filter(|block| block.is_head());
        heads.map(|head| {
            let chain = std::iter::successors(Some(head), |block| self.blocks.get(block.next as usize));
            (head.pool as usize, merged(chain.map(SmallBlock::view)))
        })
    }

    /// Takes an unused id for a new block.
    #[inline(always)]
    fn vacant_id(&mut self) -> u32 {
        let id = self.vacant;
        if let Some(vacant) = self.blocks.get(id as usize) {
            self.vacant = vacant.next;
            return id;
        }
        let n = self.blocks.len();
        if n == self.blocks.capacity() {
            // Growing copies all blocks, of which there may be tens of thousands, so it grows by a lot.
            self.blocks.reserve((3 * n).max(1024));
        }
        self.blocks.push(NO_BLOCK);
        (self.blocks.len() - 1) as u32
    }
}

const NO_BLOCK: SmallBlock = SmallBlock {
    address: 0,
    prev: NONE,
    next: NONE,
    before: NONE,
    after: NONE,
    pool: 0,
    units: 0,
    state: SmallState::Gone,
};

/// Units of a rounded request of the small pool.
#[inline(always)]
const fn units(bytes: u64) -> u16 {
    (bytes / MIN_BLOCK) as u16
}

/// Puts the id of a removed block on the list of ids to reuse.
#[inline(always)]
fn vacate(blocks: &mut [SmallBlock], vacant: &mut u32, id: u32) {
    let block = &mut blocks[id as usize];
    (block.units, block.state) = (0, SmallState::Gone);
    block.next = std::mem::replace(vacant, id);
}

/// Merges adjacent free blocks of a segment.
fn merged(blocks: impl Iterator<Item = BlockView>) -> Vec<BlockView> {
    let mut merged: Vec<BlockView> = Vec::new();
    for block in blocks {
        match merged.last_mut() {
            Some(last) if last.state == BlockState::Free && block.state == BlockState::Free => last.size += block.size,
            _ => merged.push(block),
        }
    }
    merged
}
