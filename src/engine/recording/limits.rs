//! The most that a recording may hold. What passes these is no recording, or would take more memory than it says anything.

/// Bytes of a recording, unpacked: a step of a 7B model takes some ten million.
pub const MOST_BYTES: u64 = 1 << 30;

/// Bytes of one line: an optimizer names each parameter several times in one operation.
pub(super) const MOST_LINE: u64 = 1 << 24;

/// Storages and kernels' temporaries; fewer in tests, which pass it.
pub(super) const MOST_BORN: usize = if cfg!(test) { 1 << 16 } else { 1 << 22 };

/// Declarations of each kind.
pub(super) const MOST_DECLARED: usize = 1 << 20;

/// Bytes of all names, which are kept as long as the program runs.
pub(super) const MOST_NAMED: usize = 1 << 25;

/// Elements of a tensor, and elements between its first and its last.
pub(super) const MOST_ELEMENTS: u64 = 1 << 40;

/// Bytes of a storage: no card has as many.
pub(super) const MOST_STORED: u64 = 1 << 42;

/// Streaming multiprocessors of a card.
pub(super) const MOST_SMS: u64 = 4096;

/// Bytes of a recording of all sizes, unpacked: its lines are kept.
pub(super) const MOST_SIZES_BYTES: u64 = 1 << 28;

/// Lines of one structure.
pub(super) const MOST_STRUCTURE_LINES: usize = 1 << 20;
