use super::bitmap::Bitmap;
use super::size::MIN_BLOCK;

/// One cached block of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub id: u32,
}

impl Entry {
    /// Whether it comes after `other`, of another address, in the order of the pool.
    #[inline]
    fn is_after(&self, other: &Self) -> bool {
        (self.size, self.address) > (other.size, other.address)
    }
}

/// The cached blocks of one pool and stream, ordered by size, then address
/// (`BlockPool::blocks` with `BlockComparatorSize`).
///
/// A training step caches hundreds of blocks of a few dozen sizes, so they lie on shelves by size
/// class, with a bitmap of the shelves that hold something: the search of TLSF (Masmano et al.,
/// "TLSF: a new dynamic memory allocator for real-time systems", 2004), but exact, since each shelf is
/// sorted.
#[derive(Debug, Clone)]
pub(super) struct FreeBlocks {
    /// By class: index into `shelves`, or [`NO_SHELF`].
    shelf_of: Vec<u16>,
    /// Smallest and lowest block last, where it is cheap to take.
    shelves: Vec<Vec<Entry>>,
    /// The classes whose shelf is not empty.
    occupied: Bitmap<{ CLASSES.div_ceil(64) }>,
}

const NO_SHELF: u16 = u16::MAX;

/// Classes per doubling of the size, as a power of two.
const PRECISION: u32 = 8;
/// Doublings from the smallest block to 2 TiB, more than any address space that is simulated.
const DOUBLINGS: usize = 32;
const CLASSES: usize = (DOUBLINGS - PRECISION as usize + 1) << PRECISION;

/// The class of a size: one per 512 B up to 256 KiB, then 256 per doubling.
#[inline]
fn class(size: u64) -> usize {
    let units = size / MIN_BLOCK;
    let shift = (units | 1).ilog2().saturating_sub(PRECISION);
    ((shift as usize) << PRECISION)
        .saturating_add((units >> shift) as usize)
        .min(CLASSES - 1)
}

impl Default for FreeBlocks {
    fn default() -> Self {
        Self {
            shelf_of: vec![NO_SHELF; CLASSES],
            shelves: Vec::new(),
            occupied: Bitmap::default(),
        }
    }
}

impl FreeBlocks {
    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        let class = class(entry.size);
        let shelf = self.shelf_or_new(class);
        match shelf.last() {
            Some(last) if entry.is_after(last) => {
                let at = position(shelf, entry);
                shelf.insert(at, entry);
            }
            Some(_) => shelf.push(entry),
            None => {
                shelf.push(entry);
                self.occupied.insert(class);
            }
        }
    }

    /// Removes a block, which must be here.
    #[inline]
    pub fn remove(&mut self, entry: Entry) {
        let class = class(entry.size);
        let at = position(self.shelf(class), entry) - 1;
        let removed = self.remove_at(class, at);
        debug_assert_eq!(removed, entry);
    }

    /// Removes and returns the smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn take_best_fit(&mut self, size: u64) -> Option<Entry> {
        let (class, at) = self.find(size)?;
        Some(self.remove_at(class, at))
    }

    /// The smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn best_fit(&self, size: u64) -> Option<Entry> {
        let (class, at) = self.find(size)?;
        Some(self.shelf(class)[at])
    }

    /// Class and place on its shelf of the smallest block of at least `size` bytes.
    #[inline]
    fn find(&self, size: u64) -> Option<(usize, usize)> {
        let first = self.occupied.next(class(size))?;
        // Blocks of the request's own class may still be too small.
        if let Some(at) = self.shelf(first).iter().rposition(|entry| entry.size >= size) {
            return Some((first, at));
        }
        let next = self.occupied.next(first + 1)?;
        Some((next, self.shelf(next).len() - 1))
    }

    /// The blocks of a class that has a shelf.
    #[inline]
    fn shelf(&self, class: usize) -> &[Entry] {
        &self.shelves[self.shelf_of[class] as usize]
    }

    #[inline]
    fn remove_at(&mut self, class: usize, at: usize) -> Entry {
        let shelf = &mut self.shelves[self.shelf_of[class] as usize];
        let entry = if at + 1 == shelf.len() {
            shelf.swap_remove(at)
        } else {
            shelf.remove(at)
        };
        if shelf.is_empty() {
            self.occupied.remove(class);
        }
        entry
    }

    #[inline]
    fn shelf_or_new(&mut self, class: usize) -> &mut Vec<Entry> {
        if self.shelf_of[class] == NO_SHELF {
            self.shelf_of[class] = self.shelves.len() as u16;
            self.shelves.push(Vec::new());
        }
        &mut self.shelves[self.shelf_of[class] as usize]
    }

    /// Blocks of at least `size` bytes, smallest first.
    #[inline]
    pub fn at_least(&self, size: u64) -> impl Iterator<Item = Entry> {
        std::iter::successors(self.occupied.next(class(size)), |class| self.occupied.next(class + 1))
            .flat_map(|class| self.shelf(class).iter().rev())
            .filter(move |entry| entry.size >= size)
            .copied()
    }

    /// All blocks, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        self.at_least(0)
    }
}

/// How many blocks of a shelf come before a block, itself included if it is there.
#[inline]
fn position(shelf: &[Entry], entry: Entry) -> usize {
    // Nine in ten come and go within the lowest few.
    const NEAR: usize = 8;
    let before = |other: &Entry| !entry.is_after(other);
    let far = shelf.len().saturating_sub(NEAR);
    match shelf[far..].iter().rposition(before) {
        Some(at) => far + at + 1,
        None => shelf[..far].partition_point(before),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_ascend_with_the_size() {
        assert_eq!((class(512), class(1024), class(511 * 512)), (1, 2, 511));
        let sizes = (1..50_000)
            .map(|units| units * MIN_BLOCK)
            .chain((5..24).map(|power| 1 << (20 + power)));
        let classes: Vec<usize> = sizes.map(class).collect();
        assert!(classes.is_sorted());
        assert!(classes.last().is_some_and(|&last| last < CLASSES));
    }

    proptest! {
        #[test]
        fn the_best_fit_is_that_of_a_sorted_set(
            ops in proptest::collection::vec((0..3, prop_oneof![1_u64..40, 1_u64..100_000], 0_u64..50), 1..200),
        ) {
            let mut blocks = FreeBlocks::default();
            let mut set = BTreeSet::new();
            for (op, units, place) in ops {
                let entry = Entry { size: units * MIN_BLOCK, address: place * MIN_BLOCK, id: place as u32 };
                match op {
                    0 => {
                        let expected = set.range(Entry { address: 0, id: 0, ..entry }..).next().copied();
                        prop_assert_eq!(blocks.take_best_fit(entry.size), expected);
                        expected.map(|found| set.remove(&found));
                    }
                    1 if set.remove(&entry) => blocks.remove(entry),
                    _ if set.insert(entry) => blocks.insert(entry),
                    _ => {}
                }
                prop_assert!(blocks.iter().eq(set.iter().copied()));
                prop_assert!(blocks.at_least(entry.size).eq(set.iter().copied().filter(|e| e.size >= entry.size)));
            }
        }
    }
}
