use super::bitmap::Bitmap;
use super::size::MIN_BLOCK;

/// One cached block of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub id: u32,
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
    shelves: Vec<Vec<Place>>,
    /// The classes whose shelf is not empty.
    occupied: Bitmap<{ CLASSES.div_ceil(64) }>,
}

/// A block on a shelf: small enough to be passed in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    address: u64,
    /// Of its size within the class.
    rank: u32,
    id: u32,
}

impl Place {
    #[inline]
    fn is_after(self, other: Self) -> bool {
        (self.rank, self.address) > (other.rank, other.address)
    }

    fn entry(self, class: usize) -> Entry {
        Entry {
            size: size_of(class, self.rank),
            address: self.address,
            id: self.id,
        }
    }
}

const NO_SHELF: u16 = u16::MAX;

/// Classes per doubling of the size, as a power of two.
const PRECISION: u32 = 8;
/// Doublings from the smallest block to more than any address space.
const DOUBLINGS: usize = 40;
const CLASSES: usize = (DOUBLINGS - PRECISION as usize + 1) << PRECISION;

/// The class of a size, one per 512 B up to 256 KiB, then 256 per doubling; and the size's rank among
/// those of its class.
#[inline]
fn class(size: u64) -> (usize, u32) {
    let units = size / MIN_BLOCK;
    let shift = (units | 1).ilog2().saturating_sub(PRECISION);
    let class = ((shift as usize) << PRECISION).saturating_add((units >> shift) as usize);
    let rank = units & ((1 << shift) - 1);
    (class.min(CLASSES - 1), rank as u32)
}

/// The size that has this class and rank.
fn size_of(class: usize, rank: u32) -> u64 {
    let shift = (class >> PRECISION).saturating_sub(1);
    let units = ((class - (shift << PRECISION)) as u64) << shift;
    (units + u64::from(rank)) * MIN_BLOCK
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
    /// Puts a block in, of whole units of 512 B.
    #[inline]
    pub fn insert(&mut self, size: u64, address: u64, id: u32) {
        let (class, rank) = class(size);
        let place = Place { address, rank, id };
        let shelf = self.shelf_or_new(class);
        match shelf.last() {
            Some(&last) if place.is_after(last) => insert_within(shelf, place),
            Some(_) => shelf.push(place),
            None => {
                shelf.push(place);
                self.occupied.insert(class);
            }
        }
    }

    /// Takes a block out, which must be here.
    #[inline]
    pub fn remove(&mut self, size: u64, address: u64) {
        let (class, rank) = class(size);
        let shelf = self.shelf_mut(class);
        if shelf.last().is_some_and(|last| last.address == address) {
            shelf.pop();
        } else {
            remove_within(shelf, Place { address, rank, id: 0 });
        }
        self.note_empty(class);
    }

    /// Takes out the smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn take_best_fit(&mut self, size: u64) -> Option<u32> {
        let (class, at) = self.find(size)?;
        let shelf = self.shelf_mut(class);
        let place = if at + 1 == shelf.len() {
            shelf.swap_remove(at)
        } else {
            shelf.remove(at)
        };
        self.note_empty(class);
        Some(place.id)
    }

    /// The smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn best_fit(&self, size: u64) -> Option<Entry> {
        let (class, at) = self.find(size)?;
        Some(self.shelf(class)[at].entry(class))
    }

    /// Class and place on its shelf of the smallest block of at least `size` bytes.
    #[inline]
    fn find(&self, size: u64) -> Option<(usize, usize)> {
        let (class, rank) = class(size);
        let first = self.occupied.next(class)?;
        let shelf = self.shelf(first);
        // Blocks of the request's own class may still be too small.
        if first > class || shelf.last().is_some_and(|last| last.rank >= rank) {
            return Some((first, shelf.len() - 1));
        }
        if let Some(at) = shelf.iter().rposition(|place| place.rank >= rank) {
            return Some((first, at));
        }
        let next = self.occupied.next(class + 1)?;
        Some((next, self.shelf(next).len() - 1))
    }

    /// The blocks of a class that has a shelf.
    #[inline]
    fn shelf(&self, class: usize) -> &[Place] {
        &self.shelves[self.shelf_of[class] as usize]
    }

    #[inline]
    fn shelf_mut(&mut self, class: usize) -> &mut Vec<Place> {
        &mut self.shelves[self.shelf_of[class] as usize]
    }

    #[inline]
    fn note_empty(&mut self, class: usize) {
        if self.shelf(class).is_empty() {
            self.occupied.remove(class);
        }
    }

    #[inline]
    fn shelf_or_new(&mut self, class: usize) -> &mut Vec<Place> {
        if self.shelf_of[class] == NO_SHELF {
            self.add_shelf(class);
        }
        self.shelf_mut(class)
    }

    #[cold]
    fn add_shelf(&mut self, class: usize) {
        self.shelf_of[class] = self.shelves.len() as u16;
        self.shelves.push(Vec::new());
    }

    /// Blocks of at least `size` bytes, smallest first.
    #[inline]
    pub fn at_least(&self, size: u64) -> impl Iterator<Item = Entry> {
        std::iter::successors(self.occupied.next(class(size).0), |class| self.occupied.next(class + 1))
            .flat_map(|class| self.shelf(class).iter().rev().map(move |place| place.entry(class)))
            .filter(move |entry| entry.size >= size)
    }

    /// All blocks, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        self.at_least(0)
    }
}

/// Puts a block elsewhere than at the end, where nine in ten go.
#[cold]
fn insert_within(shelf: &mut Vec<Place>, place: Place) {
    let at = position(shelf, place);
    shelf.insert(at, place);
}

/// Takes a block from elsewhere than the end.
#[cold]
fn remove_within(shelf: &mut Vec<Place>, place: Place) {
    let removed = shelf.remove(position(shelf, place) - 1);
    debug_assert_eq!((removed.address, removed.rank), (place.address, place.rank));
}

/// How many blocks of a shelf come before a block, itself included if it is there.
fn position(shelf: &[Place], place: Place) -> usize {
    // Most come and go within the lowest few.
    const NEAR: usize = 8;
    let before = |other: &Place| !place.is_after(*other);
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
        assert_eq!(
            [512, 1024, 511 * 512, 513 * 512].map(class),
            [(1, 0), (2, 0), (511, 0), (512, 1)]
        );
        let sizes = (1..50_000)
            .map(|units| units * MIN_BLOCK)
            .chain((5..28).map(|power| (1 << (20 + power)) - MIN_BLOCK));
        let (sizes, classes): (Vec<u64>, Vec<_>) = sizes.map(|size| (size, class(size))).unzip();
        assert!(classes.is_sorted());
        assert!(classes.last().is_some_and(|(last, _)| *last < CLASSES - 1));
        assert!(classes.iter().map(|&(class, rank)| size_of(class, rank)).eq(sizes));
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
                        prop_assert_eq!(blocks.best_fit(entry.size), expected);
                        prop_assert_eq!(blocks.take_best_fit(entry.size), expected.map(|found| found.id));
                        expected.map(|found| set.remove(&found));
                    }
                    1 if set.remove(&entry) => blocks.remove(entry.size, entry.address),
                    _ if set.insert(entry) => blocks.insert(entry.size, entry.address, entry.id),
                    _ => {}
                }
                prop_assert!(blocks.iter().eq(set.iter().copied()));
                prop_assert!(blocks.at_least(entry.size).eq(set.iter().copied().filter(|e| e.size >= entry.size)));
            }
        }
    }
}
