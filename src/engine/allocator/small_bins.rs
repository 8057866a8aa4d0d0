//! Bins of cached blocks of a small pool.

use super::arena::NONE;
use super::bin::Bin;
use super::bitmap::Bitmap;
use super::small_pools::{SmallBlock, UNITS};

/// Bits of a word.
const WORD: usize = u64::BITS as usize;
const _: () = assert!(UNITS.is_power_of_two());

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
}

impl Default for SmallBins {
    fn default() -> Self {
        Self {
            bins: Box::new([Bin::EMPTY; UNITS]),
            occupied: Bitmap::default(),
            loose: NONE,
        }
    }
}

/// Index of the bin for blocks of this many units, masked so that the compiler drops the bounds check.
#[inline(always)]
const fn bin(units: u16) -> usize {
    (units as usize).wrapping_sub(1) & (UNITS - 1)
}

impl SmallBins {
    /// Finds the smallest block of at least `units` units; of equals, the lowest.
    #[inline(always)]
    pub fn best_fit(&self, blocks: &[SmallBlock], units: u16) -> Option<u32> {
        let shelved = self.occupied.next(bin(units));
        let Some(loose) = blocks.get(self.loose as usize).filter(|loose| loose.units >= units) else {
            return Some(self.bins[shelved?].first);
        };
        let Some(shelved) = shelved else {
            return Some(self.loose);
        };
        let own = bin(loose.units);
        let first = self.bins[shelved].first;
        let is_loose_better = own < shelved || own == shelved && loose.address < blocks[first as usize].address;
        Some(if is_loose_better { self.loose } else { first })
    }

    /// Inserts a block.
    #[inline(always)]
    pub fn insert(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let last = std::mem::replace(&mut self.loose, id);
        if last != NONE {
            self.shelve(blocks, last);
        }
    }

    /// Removes a block, which must be here.
    #[inline(always)]
    pub fn remove(&mut self, blocks: &mut [SmallBlock], id: u32) {
        if id == self.loose {
            self.loose = NONE;
        } else {
            self.unshelve(blocks, id);
        }
    }

    #[inline(never)]
    fn shelve(&mut self, blocks: &mut [SmallBlock], id: u32) {
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
                let before = place(blocks, address, hint);
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
    pub fn unshelve(&mut self, blocks: &mut [SmallBlock], id: u32) {
        let SmallBlock {
            before, after, units, ..
        } = blocks[id as usize];
        let number = bin(units);
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
            }
        }
        if let Some(after) = blocks.get_mut(after as usize) {
            after.before = before;
        }
    }
}

/// Finds the block of a bin behind which an address belongs, which is not before all of them; the search begins at
/// `hint`.
#[inline(never)]
fn place(blocks: &[SmallBlock], address: u64, hint: u32) -> u32 {
    let mut at = hint;
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
