//! The small pools of an allocator whose options leave their search alone.

use super::arena::{BlockState, NONE};
use super::size::{MIN_BLOCK, SMALL_SEGMENT};
use super::small_shelves::SmallShelves;
use super::view::BlockView;

/// Units of 512 B in a segment, and so the sizes that a block can have.
pub(super) const UNITS: usize = (SMALL_SEGMENT / MIN_BLOCK) as usize;

/// The small pools of all streams: segments of 2 MiB, cut into blocks of whole units of 512 B.
///
/// Of the requests of a training step nine in ten are small. The rules are those of the general pools
/// ([`FreeBlocks`](super::free_blocks::FreeBlocks) and `chain.rs`), against which this is tested, and what is simple
/// about small blocks makes it faster: each is cut to the request, and there are so few sizes that each has a shelf.
///
/// Tensors die in groups, and neighbours often together. So what is freed waits until someone looks into the cache
/// again, and is then merged and cached a whole range at a time.
#[derive(Debug)]
pub(super) struct SmallPools {
    blocks: Vec<SmallBlock>,
    /// What was freed since someone last looked into the cache.
    freed: Vec<u32>,
    /// An id that is to be used again; others follow by `next`.
    vacant: u32,
    /// One for each stream.
    pools: Vec<SmallShelves>,
}

/// A contiguous part of one segment, linked to its neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallBlock {
    /// Device address.
    pub address: u64,
    /// Neighbours in the segment.
    prev: u32,
    next: u32,
    /// Neighbours on the shelf; of no meaning while it is not on one.
    pub before: u32,
    pub after: u32,
    /// Index of its stream.
    pool: u32,
    /// Its size; 0: there is no such block.
    pub units: u16,
    state: SmallState,
}

/// What a small block is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmallState {
    /// Merged with its free neighbours, and cached.
    Cached,
    /// Neither yet.
    Freed,
    Allocated,
    AwaitingFree,
    /// There is no such block.
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
    /// A pool for one more stream.
    pub fn add_pool(&mut self) {
        self.pools.push(SmallShelves::default());
    }

    /// Makes a block of so many bytes, a multiple of 512, live, if a cached one serves it.
    #[inline(always)]
    pub fn take(&mut self, pool: usize, bytes: u64) -> Option<u32> {
        self.cache_freed();
        let units = units(bytes);
        let shelves = &mut self.pools[pool];
        let id = shelves.best_fit(&self.blocks, units)?;
        let found = &mut self.blocks[id as usize];
        if found.units == units {
            found.state = SmallState::Allocated;
            shelves.remove(&mut self.blocks, id);
            return Some(id);
        }
        if id != shelves.loose {
            shelves.unshelve(&mut self.blocks, id);
            shelves.lay(&mut self.blocks, id);
        }
        Some(self.cut_front(id, units))
    }

    /// Cuts the first units off a cached block, as a live one.
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

    /// Whether a cached block serves so many bytes.
    pub fn has(&mut self, pool: usize, bytes: u64) -> bool {
        self.cache_freed();
        self.find(pool, units(bytes)).is_some()
    }

    /// The block that serves so many units, of those that are cached.
    #[inline(never)]
    fn find(&self, pool: usize, units: u16) -> Option<u32> {
        self.pools[pool].best_fit(&self.blocks, units)
    }

    /// Makes the first bytes of a new segment at this address live, where nothing cached serves them.
    pub fn take_new(&mut self, pool: usize, address: u64, bytes: u64) -> u32 {
        let id = self.vacant_id();
        self.blocks[id as usize] = SmallBlock {
            address,
            pool: pool as u32,
            units: UNITS as u16,
            state: SmallState::Cached,
            ..NO_BLOCK
        };
        self.pools[pool].lay(&mut self.blocks, id);
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

    /// A live block's owner lets go of it, and so does its stream: its bytes.
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

    /// A live block's owner lets go of it: its bytes.
    ///
    /// # Panics
    /// When the block is not live.
    pub fn request_free(&mut self, id: u32) -> u64 {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == SmallState::Allocated, "the block is not live");
        block.state = SmallState::AwaitingFree;
        block.size()
    }

    /// The last stream is done with a block.
    ///
    /// # Panics
    /// When its owner has not let go of it.
    pub fn complete_free(&mut self, id: u32) {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == SmallState::AwaitingFree, "the block was not let go of");
        block.state = SmallState::Freed;
        self.freed.push(id);
    }

    /// Merges and caches what was freed; everyone who looks into the cache does this before.
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
            // or else a range before has taken it in
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
        let shelves = &mut self.pools[blocks[id as usize].pool as usize];
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
                SmallState::Cached => shelves.remove(blocks, prev),
                _ => break,
            }
            vacate(blocks, &mut self.vacant, range);
            units += front.units;
            (range, prev) = (prev, front.prev);
        }
        while let Some(&behind) = blocks.get(next as usize) {
            match behind.state {
                SmallState::Freed => {}
                SmallState::Cached => shelves.remove(blocks, next),
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
        shelves.lay(blocks, range);
    }

    /// Gives up the segment at this address; whether there was one without a live block.
    pub fn release(&mut self, address: u64) -> bool {
        self.cache_freed();
        let is_it = |block: &SmallBlock| block.is_cached_segment() && block.address == address;
        let id = self.blocks.iter().position(is_it);
        if let Some(id) = id {
            self.give_up(id as u32);
        }
        id.is_some()
    }

    /// Gives up some segment without a live block: its address.
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

    /// How many segments there are.
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

    /// The id of a block to come.
    #[inline(always)]
    fn vacant_id(&mut self) -> u32 {
        let id = self.vacant;
        if let Some(vacant) = self.blocks.get(id as usize) {
            self.vacant = vacant.next;
            return id;
        }
        let n = self.blocks.len();
        if n == self.blocks.capacity() {
            // they are copied, and there may be tens of thousands: seldom
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

/// Units of a request that was rounded, which is in the small pool.
#[inline(always)]
const fn units(bytes: u64) -> u16 {
    (bytes / MIN_BLOCK) as u16
}

/// Leaves the id of a block that is gone to the next one.
#[inline(always)]
fn vacate(blocks: &mut [SmallBlock], vacant: &mut u32, id: u32) {
    let block = &mut blocks[id as usize];
    (block.units, block.state) = (0, SmallState::Gone);
    block.next = std::mem::replace(vacant, id);
}

/// Blocks of a segment, free neighbours as one.
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
