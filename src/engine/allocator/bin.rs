//! One bin of cached blocks.

use super::arena::NONE;

/// Entry points of a bin: a linked list of cached blocks of one size or class, by size, then address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bin {
    /// The smallest, then lowest block, or [`NONE`].
    pub first: u32,
    /// Start of searches: the last block that arrived, or another while that one is gone; [`NONE`] if the bin is empty.
    pub hint: u32,
}

impl Bin {
    /// An empty bin.
    pub const EMPTY: Self = Self {
        first: NONE,
        hint: NONE,
    };
}
