//! The small pools of an allocator whose options leave their search alone.

use super::arena::{BlockState, NONE};
use super::bitmap::Bitmap;
use super::shelf::Shelf;
use super::size::{MIN_BLOCK, SMALL_SEGMENT};
use super::view::BlockView;

/// Units of 512 B in a segment, and so the sizes that a block can have.
const UNITS: usize = (SMALL_SEGMENT / MIN_BLOCK) as usize;
/// Bits of a word.
const WORD: usize = u64::BITS as usize;
const _: () = assert!(UNITS.is_power_of_two());

/// The small pools of all streams: segments of 2 MiB, cut into blocks of whole units of 512 B.
///
/// Of the requests of a training step nine in ten are small. The rules are those of the general pools
/// ([`FreeBlocks`](super::free_blocks::FreeBlocks) and `chain.rs`), against which this is tested, and what is simple
/// about small blocks makes it faster: each is cut to the request, and there are so few sizes that each has a shelf.
#[derive(Debug)]
pub(super) struct SmallPools {
    blocks: Vec<SmallBlock>,
    /// An id that is to be used again; others follow by `next`.
    vacant: u32,
    /// One for each stream.
    pools: Vec<Shelves>,
}

/// A contiguous part of one segment, linked to its neighbours.
#[derive(Debug, Clone, Copy)]
struct SmallBlock {
    /// Device address.
    address: u64,
    /// Neighbours in the segment.
    prev: u32,
    next: u32,
    /// Neighbours on the shelf; of no meaning while it is not on one.
    before: u32,
    after: u32,
    /// Index of its stream.
    pool: u32,
    /// Its size; 0: there is no such block.
    units: u16,
    state: BlockState,
}

impl SmallBlock {
    const fn size(&self) -> u64 {
        self.units as u64 * MIN_BLOCK
    }

    const fn is_head(&self) -> bool {
        self.units > 0 && self.prev == NONE
    }

    fn is_cached_segment(&self) -> bool {
        usize::from(self.units) == UNITS && self.state == BlockState::Free
    }
}

impl Default for SmallPools {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            vacant: NONE,
            pools: Vec::new(),
        }
    }
}

impl SmallPools {
    /// A pool for one more stream.
    pub fn add_pool(&mut self) {
        self.pools.push(Shelves::default());
    }

    /// Makes a block of so many bytes, a multiple of 512, live, if a cached one serves it.
    #[inline(always)]
    pub fn take(&mut self, pool: usize, bytes: u64) -> Option<u32> {
        let units = units(bytes);
        let shelves = &mut self.pools[pool];
        let id = shelves.best_fit(&self.blocks, units)?;
        let found = &mut self.blocks[id as usize];
        if found.units == units {
            found.state = BlockState::Allocated;
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
            state: BlockState::Allocated,
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
    #[inline]
    pub fn has(&self, pool: usize, bytes: u64) -> bool {
        self.pools[pool].best_fit(&self.blocks, units(bytes)).is_some()
    }

    /// A new segment at this address, cached.
    pub fn add_segment(&mut self, pool: usize, address: u64) {
        let id = self.vacant_id();
        self.blocks[id as usize] = SmallBlock {
            address,
            pool: pool as u32,
            units: UNITS as u16,
            state: BlockState::Free,
            ..NO_BLOCK
        };
        self.pools[pool].lay(&mut self.blocks, id);
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
        let block = self.blocks[id as usize];
        assert!(block.state == BlockState::Allocated, "the block is not live");
        self.merge(id, block);
        block.size()
    }

    /// A live block's owner lets go of it: its bytes.
    ///
    /// # Panics
    /// When the block is not live.
    pub fn request_free(&mut self, id: u32) -> u64 {
        let block = &mut self.blocks[id as usize];
        assert!(block.state == BlockState::Allocated, "the block is not live");
        block.state = BlockState::AwaitingFree;
        block.size()
    }

    /// The last stream is done with a block.
    ///
    /// # Panics
    /// When its owner has not let go of it.
    pub fn complete_free(&mut self, id: u32) {
        let block = self.blocks[id as usize];
        assert!(block.state == BlockState::AwaitingFree, "the block was not let go of");
        self.merge(id, block);
    }

    /// Merges a block with its free neighbours and caches it.
    #[inline(always)]
    fn merge(&mut self, id: u32, block: SmallBlock) {
        let SmallBlock {
            prev,
            mut next,
            mut units,
            ..
        } = block;
        let blocks = &mut self.blocks[..];
        let shelves = &mut self.pools[block.pool as usize];
        if let Some(&behind) = blocks.get(next as usize)
            && behind.state == BlockState::Free
        {
            shelves.remove(blocks, next);
            vacate(blocks, &mut self.vacant, next);
            units += behind.units;
            next = behind.next;
            if let Some(end) = blocks.get_mut(next as usize) {
                end.prev = id;
            }
        }
        let mut merged = id;
        if let Some(&front) = blocks.get(prev as usize)
            && front.state == BlockState::Free
        {
            shelves.remove(blocks, prev);
            vacate(blocks, &mut self.vacant, id);
            units += front.units;
            merged = prev;
            if let Some(end) = blocks.get_mut(next as usize) {
                end.prev = merged;
            }
        }
        let block = &mut blocks[merged as usize];
        (block.units, block.next, block.state) = (units, next, BlockState::Free);
        shelves.lay(blocks, merged);
    }

    /// Gives up the segment at this address; whether there was one without a live block.
    pub fn release(&mut self, address: u64) -> bool {
        let is_it = |block: &SmallBlock| block.is_cached_segment() && block.address == address;
        let id = self.blocks.iter().position(is_it);
        if let Some(id) = id {
            self.give_up(id as u32);
        }
        id.is_some()
    }

    /// Gives up some segment without a live block: its address.
    pub fn release_one(&mut self) -> Option<u64> {
        let whole = |pool: &Shelves| pool.best_fit(&self.blocks, UNITS as u16);
        let id = self.pools.iter().find_map(whole)?;
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
            let view = |block: &SmallBlock| BlockView {
                address: block.address,
                size: block.size(),
                state: block.state,
            };
            (head.pool as usize, chain.map(view).collect())
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
    state: BlockState::Unmapped,
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
    (block.units, block.state) = (0, BlockState::Unmapped);
    block.next = std::mem::replace(vacant, id);
}

/// The cached blocks of one stream by size, then address.
#[derive(Debug)]
struct Shelves {
    /// One for each number of units, from 1.
    shelves: Box<[Shelf; UNITS]>,
    /// The shelves that are not empty.
    occupied: Bitmap<{ UNITS / WORD }, 1>,
    /// The block that arrived last, on no shelf yet, or [`NONE`]: it is often cut or merged again before another
    /// arrives.
    loose: u32,
}

impl Default for Shelves {
    fn default() -> Self {
        Self {
            shelves: Box::new([Shelf::EMPTY; UNITS]),
            occupied: Bitmap::default(),
            loose: NONE,
        }
    }
}

/// The shelf of blocks of so many units; the compiler sees that there is one.
#[inline(always)]
const fn shelf(units: u16) -> usize {
    (units as usize).wrapping_sub(1) & (UNITS - 1)
}

impl Shelves {
    /// The smallest block of at least so many units; of equals, the lowest.
    #[inline(always)]
    fn best_fit(&self, blocks: &[SmallBlock], units: u16) -> Option<u32> {
        let shelved = self.occupied.next(shelf(units));
        let Some(loose) = blocks.get(self.loose as usize).filter(|loose| loose.units >= units) else {
            return Some(self.shelves[shelved?].first);
        };
        let Some(shelved) = shelved else {
            return Some(self.loose);
        };
        let own = shelf(loose.units);
        let first = self.shelves[shelved].first;
        let is_loose_better = own < shelved || own == shelved && loose.address < blocks[first as usize].address;
        Some(if is_loose_better { self.loose } else { first })
    }

    /// Puts a block in.
    #[inline(always)]
    fn lay(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let last = std::mem::replace(&mut self.loose, id);
        if last != NONE {
            self.shelve(blocks, last);
        }
    }

    /// Takes a block out, which must be here.
    #[inline(always)]
    fn remove(&mut self, blocks: &mut [SmallBlock], id: u32) {
        if id == self.loose {
            self.loose = NONE;
        } else {
            self.unshelve(blocks, id);
        }
    }

    #[inline(never)]
    fn shelve(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let SmallBlock { units, address, .. } = blocks[id as usize];
        let number = shelf(units);
        let shelf = &mut self.shelves[number];
        let near = std::mem::replace(&mut shelf.near, id);
        let first = shelf.first;
        let (before, after) = match blocks.get_mut(first as usize) {
            None => {
                self.occupied.insert(number);
                shelf.first = id;
                (NONE, NONE)
            }
            Some(block) if address < block.address => {
                block.before = id;
                shelf.first = id;
                (NONE, first)
            }
            Some(_) => {
                let before = place(blocks, address, near);
                let after = std::mem::replace(&mut blocks[before as usize].after, id);
                if let Some(after) = blocks.get_mut(after as usize) {
                    after.before = id;
                }
                (before, after)
            }
        };
        let block = &mut blocks[id as usize];
        (block.before, block.after) = (before, after);
    }

    #[inline(never)]
    fn unshelve(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let SmallBlock {
            before, after, units, ..
        } = blocks[id as usize];
        let number = shelf(units);
        let shelf = &mut self.shelves[number];
        if shelf.near == id {
            shelf.near = if before == NONE { after } else { before };
        }
        if let Some(before) = blocks.get_mut(before as usize) {
            before.after = after;
        } else {
            shelf.first = after;
            if after == NONE {
                self.occupied.remove(number);
            }
        }
        if let Some(after) = blocks.get_mut(after as usize) {
            after.before = before;
        }
    }
}

/// The block of a shelf behind which an address belongs, which is not before all of them; the search begins at
/// `near`.
#[inline(never)]
fn place(blocks: &[SmallBlock], address: u64, near: u32) -> u32 {
    let mut at = near;
    while blocks[at as usize].address > address {
        at = blocks[at as usize].before;
    }
    loop {
        let after = blocks[at as usize].after;
        match blocks.get(after as usize) {
            Some(block) if block.address < address => at = after,
            _ => return at,
        }
    }
}
