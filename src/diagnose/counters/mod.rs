//! The caching allocator's counters: `torch.cuda.memory_summary()` and `torch.cuda.memory_stats()`.

mod stats;
mod summary;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::amount::Amount;

pub(super) use stats::find as find_stats;
pub(super) use summary::find as find_summary;

/// A counter of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gauge {
    /// At the moment of asking.
    pub current: Option<Amount>,
    /// The highest since the start, or since the peaks were reset.
    pub peak: Option<Amount>,
}

/// Counters of one device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Number of the device, where it stands there.
    pub device: Option<u32>,
    /// Bytes of blocks that tensors hold.
    pub allocated: Gauge,
    /// Bytes that PyTorch keeps from the device: "reserved" is not "used".
    pub reserved: Gauge,
    /// Allocated, and blocks that another stream still uses.
    pub active: Gauge,
    /// What was asked for, before rounding.
    pub requested: Gauge,
    /// Free parts of segments that tensors hold other parts of (`inactive_split_bytes`, "Non-releasable
    /// memory"): what fragmentation keeps from everyone else.
    pub unreleasable: Gauge,
    /// How often a request failed (`num_ooms`).
    pub ooms: Option<u64>,
    /// How often the whole cache was given back to serve a request (`num_alloc_retries`).
    pub retries: Option<u64>,
}

impl Counters {
    fn tells_anything(&self) -> bool {
        self.allocated.current.or(self.allocated.peak).is_some() || self.reserved.current.is_some()
    }
}
