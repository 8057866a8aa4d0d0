//! Descriptions of all storages in a log.

use std::ops::Index;

use super::log::{Allocation, StorageId};

/// Descriptions of storages, in the order of allocation. Thousands of equal storages share one description.
#[derive(Debug, Clone, Default)]
pub struct Allocations {
    descriptions: Vec<Allocation>,
    /// Index of each storage's description.
    of: Vec<u32>,
}

impl Allocations {
    /// Reserves room for this many storages, of which every other one has a description of its own.
    pub(super) fn make_room(&mut self, storages: usize) {
        self.of.reserve(storages);
        self.descriptions.reserve(storages / 2);
    }

    /// Number of storages.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Returns true if nothing was allocated.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Iterates over the storages' descriptions, in the order of allocation.
    pub fn iter(&self) -> impl Iterator<Item = &Allocation> {
        self.of.iter().map(|&at| &self.descriptions[at as usize])
    }

    /// Bytes that each storage requests from the allocator, in the order of allocation.
    pub fn requests(&self) -> Vec<u64> {
        self.requests_from(0).collect()
    }

    /// Bytes that each storage from `first` on requests from the allocator.
    pub fn requests_from(&self, first: usize) -> impl ExactSizeIterator<Item = u64> {
        let of = self.of[first..].iter();
        of.map(|&at| self.descriptions[at as usize].bytes)
    }

    /// Descriptions of storages, each once.
    pub(crate) fn descriptions(&self) -> &[Allocation] {
        &self.descriptions
    }

    /// Index in [`Self::descriptions`] of a storage's description.
    #[inline]
    pub(crate) fn description_of(&self, id: StorageId) -> usize {
        self.of[id as usize] as usize
    }

    /// Adds a storage with a description of its own.
    pub(crate) fn push(&mut self, allocation: Allocation) -> StorageId {
        self.of.push(self.descriptions.len() as u32);
        self.descriptions.push(allocation);
        (self.of.len() - 1) as StorageId
    }

    /// Numbers of storages and descriptions so far.
    pub(super) fn mark(&self) -> [usize; 2] {
        [self.of.len(), self.descriptions.len()]
    }

    /// Removes everything after a mark.
    pub(super) fn rewind(&mut self, [storages, descriptions]: [usize; 2]) {
        self.of.truncate(storages);
        self.descriptions.truncate(descriptions);
    }

    /// Adds descriptions that storages will share, and returns the index of the first.
    pub(super) fn describe(&mut self, allocations: impl Iterator<Item = Allocation>) -> u32 {
        let first = self.descriptions.len() as u32;
        self.descriptions.extend(allocations);
        first
    }

    /// Adds one storage for each of `n` shared descriptions from `first` on, and returns the first storage.
    pub(super) fn share(&mut self, first: u32, n: u32) -> StorageId {
        let id = self.of.len() as StorageId;
        self.of.extend(first..first + n);
        id
    }

    /// Adds storages like those in `range`, whose descriptions they share.
    pub(super) fn repeat(&mut self, range: std::ops::Range<usize>) {
        self.of.extend_from_within(range);
    }

    /// Replaces all storages from `first` on by some with these descriptions.
    pub(super) fn replace_from(&mut self, first: usize, of: &[u32]) {
        self.of.truncate(first);
        self.of.extend_from_slice(of);
    }

    /// Description of a storage that does not share it.
    pub(crate) fn own(&mut self, id: StorageId) -> &mut Allocation {
        &mut self.descriptions[self.of[id as usize] as usize]
    }
}

impl Index<usize> for Allocations {
    type Output = Allocation;
    #[inline]
    fn index(&self, id: usize) -> &Allocation {
        &self.descriptions[self.of[id] as usize]
    }
}
