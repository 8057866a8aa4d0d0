use std::ops::Index;

use super::log::{Birth, StorageId};

/// What each storage is, in the order of birth. Thousands that are alike share one description.
#[derive(Debug, Default)]
pub struct Births {
    descriptions: Vec<Birth>,
    /// By storage: which description is its.
    of: Vec<u32>,
}

impl Births {
    /// Makes room for so many storages, of which every other one has a description of its own.
    pub(super) fn make_room(&mut self, storages: usize) {
        self.of.reserve(storages);
        self.descriptions.reserve(storages / 2);
    }

    /// Number of storages.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether nothing was born.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What each storage is, in the order of birth.
    pub fn iter(&self) -> impl Iterator<Item = &Birth> {
        self.of.iter().map(|&at| &self.descriptions[at as usize])
    }

    /// Bytes that each storage asks of the allocator, in the order of birth.
    pub fn requests(&self) -> Vec<u64> {
        self.requests_from(0).collect()
    }

    /// The same of storages that come after the first so many.
    pub fn requests_from(&self, first: usize) -> impl ExactSizeIterator<Item = u64> {
        let of = self.of[first..].iter();
        of.map(|&at| self.descriptions[at as usize].bytes)
    }

    /// What storages are, each description once.
    pub(crate) fn descriptions(&self) -> &[Birth] {
        &self.descriptions
    }

    /// Which of [`Self::descriptions`] is that of a storage.
    #[inline]
    pub(crate) fn description_of(&self, id: StorageId) -> usize {
        self.of[id as usize] as usize
    }

    /// A storage with a description of its own.
    pub(crate) fn push(&mut self, birth: Birth) -> StorageId {
        self.of.push(self.descriptions.len() as u32);
        self.descriptions.push(birth);
        (self.of.len() - 1) as StorageId
    }

    /// Storages and descriptions so far.
    pub(super) fn mark(&self) -> [usize; 2] {
        [self.of.len(), self.descriptions.len()]
    }

    /// Forgets what came after a mark.
    pub(super) fn rewind(&mut self, [storages, descriptions]: [usize; 2]) {
        self.of.truncate(storages);
        self.descriptions.truncate(descriptions);
    }

    /// Descriptions that storages will share; the number of the first.
    pub(super) fn describe(&mut self, births: impl Iterator<Item = Birth>) -> u32 {
        let first = self.descriptions.len() as u32;
        self.descriptions.extend(births);
        first
    }

    /// One storage for each of `n` shared descriptions from `first` on; the first storage.
    pub(super) fn share(&mut self, first: u32, n: u32) -> StorageId {
        let id = self.of.len() as StorageId;
        self.of.extend(first..first + n);
        id
    }

    /// The description of a storage that shares it with no other.
    pub(crate) fn own(&mut self, id: StorageId) -> &mut Birth {
        &mut self.descriptions[self.of[id as usize] as usize]
    }
}

impl Index<usize> for Births {
    type Output = Birth;
    #[inline]
    fn index(&self, id: usize) -> &Birth {
        &self.descriptions[self.of[id] as usize]
    }
}
