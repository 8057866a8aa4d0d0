//! What the storages of a run ask for, and where they lie.

use crate::allocator::{Block, PoolKind};

/// A run has tens of thousands of storages, and playing it takes as long as reading and writing them: nine in ten are
/// small, so eight bytes do for each.
#[derive(Default)]
pub(super) struct Storages {
    each: Vec<Stored>,
    large: Vec<Large>,
}

#[derive(Clone, Copy)]
struct Stored {
    /// Bytes that it asks for, or which of `large`.
    request: u32,
    /// Where it lies, while it lives.
    block: Option<Block>,
}

/// A storage of the large pool.
#[derive(Clone, Copy)]
struct Large {
    /// Bytes that it asks for.
    request: u64,
    /// Bytes of its last block, which may have more.
    block: u64,
}

/// A number with this bit is that of a large storage.
const LARGE: u32 = 1 << 31;

impl Storages {
    /// Further storages, which ask for so many bytes and do not live.
    pub fn extend(&mut self, requests: impl ExactSizeIterator<Item = u64>) {
        let n = self.each.len();
        if n > 0 && n + requests.len() > self.each.capacity() {
            // what came before is copied: seldom
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// The pool that serves a storage: rounding takes no request across the border between them.
    #[inline]
    pub fn kind(&self, id: usize) -> PoolKind {
        if self.each[id].request & LARGE == 0 {
            PoolKind::Small
        } else {
            PoolKind::Large
        }
    }

    /// Bytes that a storage asks for.
    #[inline]
    pub fn request(&self, id: usize) -> u64 {
        let request = self.each[id].request;
        if request & LARGE == 0 {
            u64::from(request)
        } else {
            self.large[(request & !LARGE) as usize].request
        }
    }

    /// Bytes of the last block of a storage of the large pool; a small block has what `round` makes of what was asked
    /// for.
    #[inline]
    pub fn block_bytes(&self, id: usize, round: impl FnOnce(u64) -> u64) -> u64 {
        let request = self.each[id].request;
        if request & LARGE == 0 {
            round(u64::from(request))
        } else {
            self.large[(request & !LARGE) as usize].block
        }
    }

    /// Notes the bytes of a storage's block, where they do not follow from what it asks for.
    #[inline]
    pub fn note_block_bytes(&mut self, id: usize, bytes: impl FnOnce() -> u64) {
        let request = self.each[id].request;
        if request & LARGE != 0 {
            self.large[(request & !LARGE) as usize].block = bytes();
        }
    }

    /// Where a storage lies, while it lives.
    #[inline]
    pub fn block(&self, id: usize) -> Option<Block> {
        self.each[id].block
    }

    /// The same, to be changed.
    #[inline]
    pub fn block_mut(&mut self, id: usize) -> &mut Option<Block> {
        &mut self.each[id].block
    }

    /// Where each storage lies that lives.
    pub fn live(&self) -> impl Iterator<Item = (usize, Block)> {
        let each = self.each.iter().enumerate();
        each.filter_map(|(id, stored)| Some((id, stored.block?)))
    }
}
