/// One cached block of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub size: u64,
    pub address: u64,
    pub id: u32,
}

/// The cached blocks of one pool and stream, by size, then address
/// (`BlockPool::blocks` with `BlockComparatorSize`).
#[derive(Debug, Clone, Default)]
pub(super) struct FreeBlocks {
    sorted: Vec<Entry>,
}

impl FreeBlocks {
    #[inline]
    fn lower_bound(&self, size: u64, address: u64) -> usize {
        self.sorted.partition_point(|e| (e.size, e.address) < (size, address))
    }

    #[inline]
    pub fn insert(&mut self, entry: Entry) {
        let at = self.lower_bound(entry.size, entry.address);
        self.sorted.insert(at, entry);
    }

    /// Removes the block of `size` bytes at `address`, which must be here.
    #[inline]
    pub fn remove(&mut self, size: u64, address: u64) {
        let at = self.lower_bound(size, address);
        debug_assert_eq!((self.sorted[at].size, self.sorted[at].address), (size, address));
        self.sorted.remove(at);
    }

    /// Removes and returns the smallest block of at least `size` bytes; of equals, the lowest.
    #[inline]
    pub fn take_best_fit(&mut self, size: u64) -> Option<Entry> {
        let at = self.lower_bound(size, 0);
        (at < self.sorted.len()).then(|| self.sorted.remove(at))
    }

    /// Blocks of at least `size` bytes, smallest first.
    pub fn at_least(&self, size: u64) -> impl DoubleEndedIterator<Item = Entry> {
        self.sorted[self.lower_bound(size, 0)..].iter().copied()
    }

    /// All blocks, smallest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Entry> {
        self.sorted.iter().copied()
    }
}
