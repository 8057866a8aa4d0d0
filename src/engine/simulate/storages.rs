//! Requests and blocks of a run's storages.

use crate::allocator::{Block, PoolKind};

/// A run has tens of thousands of storages, and replaying it is bound by reading and writing them. Nine in ten are
/// small, so each entry takes eight bytes.
#[derive(Default)]
pub(super) struct Storages {
    each: Vec<Stored>,
    large: Vec<Large>,
}

#[derive(Clone, Copy)]
struct Stored {
    /// Requested bytes, or an index into `large` with the bit [`LARGE`] set.
    request: u32,
    /// Current block, while the storage is live.
    block: Option<Block>,
}

/// A storage of the large pool.
#[derive(Clone, Copy)]
struct Large {
    /// Requested bytes.
    request: u64,
    /// Bytes of the last block, which may be larger than the request.
    block: u64,
}

/// Marks a request as an index into `large`.
const LARGE: u32 = 1 << 31;

impl Storages {
    /// Adds storages with these requests, not live yet.
    pub fn extend(&mut self, requests: impl ExactSizeIterator<Item = u64>) {
        let n = self.each.len();
        if n > 0 && n + requests.len() > self.each.capacity() {
            // Growing copies all entries, so it grows by a lot.
            self.each.reserve(requests.len().max(3 * n));
        }
        let large = &mut self.large;
        self.each.extend(requests.map(|request| Stored {
            request: match PoolKind::of(request) {
                PoolKind::Small => request as u32,
                PoolKind::Large => {
                    large.push(Large { request, block: 0 });
                    (large.len() - 1) as u32 | LARGE
                }
            },
            block: None,
        }));
    }

    /// Number of storages.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// The pool that serves a storage: rounding never moves a request from one pool to the other.
    #[inline]
    pub fn kind(&self, id: usize) -> PoolKind {
        if self.each[id].request & LARGE == 0 {
            PoolKind::Small
        } else {
            PoolKind::Large
        }
    }

    /// Bytes that a storage requests.
    #[inline]
    pub fn request(&self, id: usize) -> u64 {
        let request = self.each[id].request;
        if request & LARGE == 0 {
            u64::from(request)
        } else {
            self.large[(request & !LARGE) as usize].request
        }
    }

    /// Bytes of the last block of a storage of the large pool; a small block has the bytes to which `round` rounds the
    /// request.
    #[inline]
    pub fn block_bytes(&self, id: usize, round: impl FnOnce(u64) -> u64) -> u64 {
        let request = self.each[id].request;
        if request & LARGE == 0 {
            round(u64::from(request))
        } else {
            self.large[(request & !LARGE) as usize].block
        }
    }

    /// Notes the bytes of a storage's block, unless they follow from its request.
    #[inline]
    pub fn note_block_bytes(&mut self, id: usize, bytes: impl FnOnce() -> u64) {
        let request = self.each[id].request;
        if request & LARGE != 0 {
            self.large[(request & !LARGE) as usize].block = bytes();
        }
    }

    /// Block of a storage, while it is live.
    #[inline]
    pub fn block(&self, id: usize) -> Option<Block> {
        self.each[id].block
    }

    /// Mutable block of a storage.
    #[inline]
    pub fn block_mut(&mut self, id: usize) -> &mut Option<Block> {
        &mut self.each[id].block
    }

    /// Iterates over live storages and their blocks.
    pub fn live(&self) -> impl Iterator<Item = (usize, Block)> {
        let each = self.each.iter().enumerate();
        each.filter_map(|(id, stored)| Some((id, stored.block?)))
    }
}
