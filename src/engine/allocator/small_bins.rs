//! Bins of cached blocks of a small pool.

use std::collections::BTreeMap;

use super::arena::NONE;
use super::bin::Bin;
use super::bitmap::Bitmap;
use super::small_pools::{SmallBlock, UNITS};

/// Bits of a word.
const WORD: usize = u64::BITS as usize;
const _: () = assert!(UNITS.is_power_of_two());

/// Longest walk along a bin for the place of a block. A bin that needs more gets an index: runs with a hundred thousand
/// equal tensors, such as those of windowed attention, leave bins of as many blocks.
const MOST_STEPS: u32 = 64;

/// The cached blocks of one stream by size, then address.
#[derive(Debug)]
pub(super) struct SmallBins {
    /// One bin for each number of units, from 1.
    bins: Box<[Bin; UNITS]>,
    /// Bins that are not empty.
    occupied: Bitmap<{ UNITS / WORD }, 1>,
    /// The block that arrived last, in no bin yet, or [`NONE`]: it is often split or merged again before another
    /// arrives.
    pub loose: u32,
    /// Blocks of long bins by address.
    indexes: Vec<Index>,
}

/// Blocks of a long bin by address. Dropped when the bin is empty.
#[derive(Debug)]
struct Index {
    /// Number of the bin.
    bin: usize,
    blocks: BTreeMap<u64, u32>,
}

impl Default for SmallBins {
    fn default() -> Self {
        Self {
            bins: Box::new([Bin::EMPTY; UNITS]),
            occupied: Bitmap::default(),
            loose: NONE,
            indexes: Vec::new(),
        }
    }
}

/// Number of the bin for blocks of this many units, masked so that the compiler drops the bounds check.
#[inline(always)]
const fn bin(units: u16) -> usize {
    (units as usize).wrapping_sub(1) & (UNITS - 1)
}

impl SmallBins {
    /// Finds the smallest block of at least `units` units; of equals, the lowest.
    #[inline(always)]
    pub fn best_fit(&self, blocks: &[SmallBlock], units: u16) -> Option<u32> {
        let binned = self.occupied.next(bin(units));
        let Some(loose) = blocks.get(self.loose as usize).filter(|loose| loose.units >= units) else {
            return Some(self.bins[binned?].first);
        };
        let Some(binned) = binned else {
            return Some(self.loose);
        };
        let own = bin(loose.units);
        let first = self.bins[binned].first;
        // The loose block is cached like any other: if it were looked at only after the bins, or always first, the
        // request could get another block than PyTorch's ordered set gives, and all later addresses would differ.
        let is_loose_better = own < binned || own == binned && loose.address < blocks[first as usize].address;
        Some(if is_loose_better { self.loose } else { first })
    }

    /// Inserts a block.
    #[inline(always)]
    pub fn insert(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let last = std::mem::replace(&mut self.loose, id);
        if last != NONE {
            self.insert_into_bin(blocks, last);
        }
    }

    /// Removes a block, which must be here.
    #[inline(always)]
    pub fn remove(&mut self, blocks: &mut [SmallBlock], id: u32) {
        if id == self.loose {
            self.loose = NONE;
        } else {
            self.remove_from_bin(blocks, id);
        }
    }

    /// Links a block into the bin of its size, behind the last block with a lower address.
    #[inline(never)]
    fn insert_into_bin(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let SmallBlock { units, address, .. } = blocks[id as usize];
        let number = bin(units);
        let bin = &mut self.bins[number];
        let hint = std::mem::replace(&mut bin.hint, id);
        let first = bin.first;
        let (before, after) = match blocks.get_mut(first as usize) {
            None => {
                self.occupied.insert(number);
                bin.first = id;
                (NONE, NONE)
            }
            Some(block) if address < block.address => {
                block.before = id;
                bin.first = id;
                (NONE, first)
            }
            Some(_) => {
                let before = self.place(blocks, number, address, hint);
                let after = std::mem::replace(&mut blocks[before as usize].after, id);
                if let Some(after) = blocks.get_mut(after as usize) {
                    after.before = id;
                }
                (before, after)
            }
        };
        if let Some(index) = self.index(number) {
            index.blocks.insert(address, id);
        }
        let block = &mut blocks[id as usize];
        (block.before, block.after) = (before, after);
    }

    /// Finds the block of a bin behind which an address belongs, which is not before all of them; the search begins at
    /// `hint`.
    #[inline]
    fn place(&mut self, blocks: &[SmallBlock], bin: usize, address: u64, hint: u32) -> u32 {
        if let Some(index) = self.index(bin) {
            return index.before(address);
        }
        walk(blocks, address, hint).unwrap_or_else(|| {
            let index = Index::new(blocks, bin, self.bins[bin].first);
            let before = index.before(address);
            self.indexes.push(index);
            before
        })
    }

    /// Returns the index of a bin that has one.
    #[inline(always)]
    fn index(&mut self, bin: usize) -> Option<&mut Index> {
        self.indexes.iter_mut().find(|index| index.bin == bin)
    }

    /// Unlinks a block from the bin of its size.
    #[inline(never)]
    pub fn remove_from_bin(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let SmallBlock {
            before,
            after,
            units,
            address,
            ..
        } = blocks[id as usize];
        let number = bin(units);
        if let Some(index) = self.index(number) {
            index.blocks.remove(&address);
        }
        let bin = &mut self.bins[number];
        if bin.hint == id {
            bin.hint = if before == NONE { after } else { before };
        }
        if let Some(before) = blocks.get_mut(before as usize) {
            before.after = after;
        } else {
            bin.first = after;
            if after == NONE {
                self.occupied.remove(number);
                self.indexes.retain(|index| index.bin != number);
            }
        }
        if let Some(after) = blocks.get_mut(after as usize) {
            after.before = before;
        }
    }
}

impl Index {
    fn new(blocks: &[SmallBlock], bin: usize, first: u32) -> Self {
        let next = |&id: &u32| Some(blocks[id as usize].after).filter(|after| *after != NONE);
        let mut of_bin = BTreeMap::new();
        // They come by address; `collect` would sort them, with a sort of its own, 4 KB uncompressed.
        for id in std::iter::successors(Some(first), next) {
            of_bin.insert(blocks[id as usize].address, id);
        }
        Self { bin, blocks: of_bin }
    }

    /// Returns the last block before an address, or [`NONE`].
    fn before(&self, address: u64) -> u32 {
        self.blocks.range(..address).next_back().map_or(NONE, |(_, id)| *id)
    }
}

/// Walks from `hint` to the block behind which an address belongs; `None` if that takes too many steps.
#[inline(never)]
fn walk(blocks: &[SmallBlock], address: u64, hint: u32) -> Option<u32> {
    let mut at = hint;
    for _ in 0..MOST_STEPS {
        let block = &blocks[at as usize];
        if block.address > address {
            at = block.before;
            continue;
        }
        match blocks.get(block.after as usize) {
            Some(after) if after.address < address => at = block.after,
            _ => return Some(at),
        }
    }
    None
}
