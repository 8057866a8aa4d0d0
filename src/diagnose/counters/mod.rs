//! The caching allocator's counters: `torch.cuda.memory_summary()` and `torch.cuda.memory_stats()`.

mod stats;
mod summary;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::amount::Amount;

pub(super) use stats::find as find_stats;
pub(super) use summary::find as find_summary;

/// Current and peak value of one counter, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gauge {
    /// Value when the counters were printed.
    pub current: Option<Amount>,
    /// Highest value since the start, or since the peaks were reset.
    pub peak: Option<Amount>,
}

/// Allocator counters of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Index of the device, if the text names it.
    pub device: Option<u32>,
    /// Bytes of blocks that tensors hold.
    pub allocated: Gauge,
    /// Bytes of all segments, whether tensors use them or not ("reserved" does not mean "used").
    pub reserved: Gauge,
    /// Bytes of allocated blocks and of freed blocks that another stream still uses.
    pub active: Gauge,
    /// Bytes requested by tensors, before rounding.
    pub requested: Gauge,
    /// Free bytes in segments that tensors partly occupy (`inactive_split_bytes`, "Non-releasable memory"): the memory
    /// that fragmentation withholds from everything else.
    pub unreleasable: Gauge,
    /// Number of requests that failed (`num_ooms`).
    pub ooms: Option<u64>,
    /// Number of times that the allocator freed its whole cache to serve a request (`num_alloc_retries`).
    pub retries: Option<u64>,
}

impl Counters {
    fn tells_anything(&self) -> bool {
        self.allocated.current.or(self.allocated.peak).is_some() || self.reserved.current.is_some()
    }
}
