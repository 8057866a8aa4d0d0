use super::arena::NONE;

/// The ends of a chain of cached blocks of one size or class, by size, then address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shelf {
    /// The smallest, then lowest block, or [`NONE`].
    pub first: u32,
    /// Some block, unless there is none: the last that arrived, while it is here.
    pub near: u32,
}

impl Shelf {
    /// Nothing is on it.
    pub const EMPTY: Self = Self {
        first: NONE,
        near: NONE,
    };
}
