//! Best-fit index of cached blocks.

use super::arena::{Arena, NONE, Node};
use super::bin::Bin;
use super::bitmap::Bitmap;
use super::size::MIN_BLOCK;

/// The cached blocks of one pool and stream, ordered by size, then address
/// (`BlockPool::blocks` with `BlockComparatorSize`).
///
/// A training step caches hundreds of blocks of a few dozen sizes, so they are kept in bins by size class, with a
/// bitmap of the bins that are not empty: the search of TLSF (Masmano et al., "TLSF: a new dynamic memory allocator for
/// real-time systems", 2004), but exact, since each bin is sorted. A bin is a linked list through the blocks
/// themselves, so that a block leaves it without a search; a new one is inserted starting from the last that arrived,
/// near which most belong.
#[derive(Debug, Clone)]
pub(super) struct FreeBlocks {
    /// One bin for each class.
    bins: Vec<Bin>,
    /// The classes that are not empty.
    occupied: Bitmap<WORDS, { WORDS.div_ceil(64) }>,
}

/// Classes per doubling of the size, as a power of two.
const PRECISION: u32 = 8;
/// Doublings from the smallest block to more than any address space.
const DOUBLINGS: usize = 40;
const CLASSES: usize = (DOUBLINGS - PRECISION as usize + 1) << PRECISION;
/// Words of the bitmap of classes.
const WORDS: usize = CLASSES.div_ceil(64);

/// The class of a size: one per 512 B up to 256 KiB, then 256 per doubling.
#[inline]
fn class(size: u64) -> usize {
    let units = size / MIN_BLOCK;
    if units < 2 << PRECISION {
        return units as usize;
    }
    let shift = units.ilog2() - PRECISION;
    let class = ((shift as usize) << PRECISION) + (units >> shift) as usize;
    class.min(CLASSES - 1)
}

/// Sort key of a block within its class.
#[inline]
fn rank(node: &Node) -> (u64, u64) {
    (node.size, node.address)
}

impl Default for FreeBlocks {
    fn default() -> Self {
        Self {
            bins: vec![Bin::EMPTY; CLASSES],
            occupied: Bitmap::default(),
        }
    }
}

impl FreeBlocks {
    /// Inserts a block, whose size is a multiple of 512 B.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn insert(&mut self, blocks: &mut Arena, id: u32) {
        let class = class(blocks[id].size);
        let bin = &mut self.bins[class];
        let hint = std::mem::replace(&mut bin.hint, id);
        let first = bin.first;
        if first == NONE {
            self.occupied.insert(class);
            bin.first = id;
            let node = &mut blocks[id];
            (node.before, node.after) = (NONE, NONE);
        } else if rank(&blocks[id]) < rank(&blocks[first]) {
            bin.first = id;
            blocks.link(NONE, id, first);
        } else {
            let before = place(blocks, id, hint);
            let after = blocks[before].after;
            blocks.link(before, id, after);
        }
    }

    /// Removes a block, which must be here.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn remove(&mut self, blocks: &mut Arena, id: u32) {
        self.remove_of(blocks, id, class(blocks[id].size));
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn remove_of(&mut self, blocks: &mut Arena, id: u32, class: usize) {
        let Node { before, after, .. } = blocks[id];
        if before == NONE && after == NONE {
            self.bins[class] = Bin::EMPTY;
            self.occupied.remove(class);
            return;
        }
        let bin = &mut self.bins[class];
        if before == NONE {
            bin.first = after;
        } else {
            blocks[before].after = after;
        }
        if after != NONE {
            blocks[after].before = before;
        }
        if bin.hint == id {
            bin.hint = if before == NONE { after } else { before };
        }
    }

    /// Removes and returns the smallest block of at least `size` bytes; of equals, the lowest.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn take_best_fit(&mut self, blocks: &mut Arena, size: u64) -> Option<u32> {
        let (class, id) = self.find(blocks, size)?;
        self.remove_of(blocks, id, class);
        Some(id)
    }

    /// The smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn best_fit(&self, blocks: &Arena, size: u64) -> Option<u32> {
        self.find(blocks, size).map(|(_, id)| id)
    }

    /// The smallest block of at least `size` bytes, with its class.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn find(&self, blocks: &Arena, size: u64) -> Option<(usize, u32)> {
        let of_request = class(size);
        let class = self.occupied.next(of_request)?;
        let first = self.bins[class].first;
        // Blocks of the request's own class may still be too small.
        if class > of_request || blocks[first].size >= size {
            return Some((class, first));
        }
        if let Some(id) = chain(blocks, first).find(|&id| blocks[id].size >= size) {
            return Some((class, id));
        }
        let class = self.occupied.next(class + 1)?;
        Some((class, self.bins[class].first))
    }

    /// Blocks of at least `size` bytes, smallest first.
    pub fn at_least<'a>(&'a self, blocks: &'a Arena, size: u64) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.occupied.next(class(size)), |class| self.occupied.next(class + 1))
            .flat_map(|class| chain(blocks, self.bins[class].first))
            .filter(move |&id| blocks[id].size >= size)
    }

    /// All blocks, smallest first.
    pub fn iter<'a>(&'a self, blocks: &'a Arena) -> impl Iterator<Item = u32> + 'a {
        self.at_least(blocks, 0)
    }
}

/// Iterates over a block and those after it in its bin.
fn chain(blocks: &Arena, id: u32) -> impl Iterator<Item = u32> {
    let some = |id: u32| (id != NONE).then_some(id);
    std::iter::successors(some(id), move |&id| some(blocks[id].after))
}

/// Finds the block of a bin behind which `id` belongs, which is not before all of them; the search begins at `hint`.
#[cold]
fn place(blocks: &Arena, id: u32, hint: u32) -> u32 {
    let own = rank(&blocks[id]);
    let mut at = hint;
    while rank(&blocks[at]) > own {
        at = blocks[at].before;
    }
    loop {
        let after = blocks[at].after;
        if after == NONE || rank(&blocks[after]) > own {
            return at;
        }
        at = after;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::arena::BlockState;
    use super::super::size::PoolKind;
    use super::*;

    #[test]
    fn classes_ascend_with_the_size() {
        assert_eq!(
            [512, 1024, 511 * 512, 512 * 512, 513 * 512].map(class),
            [1, 2, 511, 512, 512]
        );
        let sizes = (1..50_000)
            .map(|units| units * MIN_BLOCK)
            .chain((5..28).map(|power| (1 << (20 + power)) - MIN_BLOCK));
        let classes: Vec<usize> = sizes.map(class).collect();
        assert!(classes.is_sorted());
        assert!(classes.last().is_some_and(|last| *last < CLASSES - 1));
    }

    fn node(size: u64, address: u64) -> Node {
        Node {
            address,
            size,
            prev: NONE,
            next: NONE,
            before: NONE,
            after: NONE,
            pool: 0,
            range: NONE,
            cached_at: 0,
            state: BlockState::Free,
            kind: PoolKind::Small,
        }
    }

    proptest! {
        #[test]
        fn the_best_fit_is_that_of_a_sorted_set(
            ops in proptest::collection::vec((0..4, prop_oneof![1_u64..40, 1_u64..100_000], 0_u64..50), 1..300),
        ) {
            let (mut free, mut blocks) = (FreeBlocks::default(), Arena::default());
            let mut set = BTreeSet::new();
            for (op, units, place) in ops {
                let (size, address) = (units * MIN_BLOCK, place * MIN_BLOCK);
                let least = set.range((size, 0, 0)..).next().copied();
                match op {
                    0 => {
                        let expected = least.map(|(_, _, id)| id);
                        prop_assert_eq!(free.best_fit(&blocks, size), expected);
                        prop_assert_eq!(free.take_best_fit(&mut blocks, size), expected);
                        least.map(|found| set.remove(&found));
                    }
                    1 => if let Some(found) = least {
                        free.remove(&mut blocks, found.2);
                        set.remove(&found);
                    }
                    _ if set.range((size, address, 0)..=(size, address, NONE)).next().is_none() => {
                        let id = blocks.insert(node(size, address));
                        free.insert(&mut blocks, id);
                        set.insert((size, address, id));
                    }
                    _ => {}
                }
                prop_assert!(free.iter(&blocks).eq(set.iter().map(|found| found.2)));
                let fitting = set.iter().filter(|found| found.0 >= size).map(|found| found.2);
                prop_assert!(free.at_least(&blocks, size).eq(fitting));
            }
        }
    }
}
