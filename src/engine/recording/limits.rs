//! Limits of recordings. A file that exceeds them is no recording, or would take too much memory to read.

/// Maximum bytes of an unpacked recording. A step of a 7B model takes some ten million.
pub const MOST_BYTES: u64 = 1 << 30;

/// Maximum bytes of one line. An optimizer names each parameter several times in one operation.
pub(super) const MOST_LINE: u64 = 1 << 24;

/// Maximum number of storages and of kernels' temporaries; lower in tests, which exceed it.
pub(super) const MOST_STORAGES: usize = if cfg!(test) { 1 << 16 } else { 1 << 22 };

/// Maximum number of declarations of each kind.
pub(super) const MOST_DECLARED: usize = 1 << 20;

/// Maximum bytes of all names, which are kept until the program ends.
pub(super) const MOST_NAMED: usize = 1 << 25;

/// Maximum elements of a tensor, and maximum distance in elements from its first to its last.
pub(super) const MOST_ELEMENTS: u64 = 1 << 40;

/// Maximum bytes of a storage, more than any card has.
pub(super) const MOST_STORAGE_BYTES: u64 = 1 << 42;

/// Maximum streaming multiprocessors of a card.
pub(super) const MOST_SMS: u64 = 4096;

/// Maximum bytes of an unpacked recording of all sizes, whose lines are kept in memory.
pub(super) const MOST_SIZES_BYTES: u64 = 1 << 28;

/// Maximum lines of one structure.
pub(super) const MOST_STRUCTURE_LINES: usize = 1 << 20;
