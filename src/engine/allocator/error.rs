//! The out-of-memory error.

use crate::units::Bytes;

/// `torch.OutOfMemoryError`: nothing cached serves the request and nothing more may be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of memory: tried to allocate {requested}, of {limit} that may be reserved {allocated} are allocated and {} are \
     reserved but unallocated",
    self.unallocated()
)]
pub struct OutOfMemory {
    /// Bytes asked of the driver; PyTorch prints them after "Tried to allocate".
    pub requested: Bytes,
    /// Bytes in live blocks, "allocated by PyTorch".
    pub allocated: Bytes,
    /// Bytes in segments, after all cached segments were released.
    pub reserved: Bytes,
    /// Most bytes that may be reserved.
    pub limit: Bytes,
}

impl OutOfMemory {
    /// Reserved bytes that no live block holds, "reserved by PyTorch but unallocated".
    pub fn unallocated(&self) -> Bytes {
        self.reserved.saturating_sub(self.allocated)
    }
}
