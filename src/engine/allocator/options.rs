//! Options of the allocator.

use crate::units::Bytes;

/// `PYTORCH_CUDA_ALLOC_CONF` and `torch.cuda.set_per_process_memory_fraction`, as far as they decide the placement of
/// blocks. The default is PyTorch's.
///
/// Source: `c10/core/AllocatorConfig.h` and `c10/cuda/CUDAAllocatorConfig.h`.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `expandable_segments`: one growing range of virtual addresses per pool and stream instead of
    /// one `cudaMalloc` per segment.
    pub expandable_segments: bool,
    /// `roundup_power2_divisions`: coarser rounding of requests.
    pub roundup_power2_divisions: RoundupDivisions,
    /// `max_split_size_mb`: blocks of at least this size are not split; `None` allows splitting every block.
    pub max_split_size: Option<Bytes>,
    /// `max_non_split_rounding_mb`: most bytes by which such a block may exceed the request that it serves.
    pub max_non_split_rounding: Bytes,
    /// `garbage_collection_threshold`: share of `limit` above which old cached segments are released before a new one
    /// is made; 0 turns it off.
    pub garbage_collection_threshold: f64,
    /// Most bytes that the process may reserve: `set_per_process_memory_fraction` × the card's memory.
    pub limit: Option<Bytes>,
    /// Bytes that the driver can hand out: the card's memory less the CUDA context and other processes.
    pub capacity: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            expandable_segments: false,
            roundup_power2_divisions: RoundupDivisions::uniform(0),
            max_split_size: None,
            max_non_split_rounding: Bytes::mib(20),
            garbage_collection_threshold: 0.0,
            limit: None,
            capacity: None,
        }
    }
}

/// Steps per power of two that requests round up to, by size of the request.
///
/// Source: `AllocatorConfig::roundup_power2_divisions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundupDivisions {
    by_interval: [u64; Self::INTERVALS],
    is_off: bool,
}

impl RoundupDivisions {
    /// One value for each power of two from 1 MiB to 32 GiB; the last serves all above
    /// (`kRoundUpPowerOfTwoIntervals`).
    pub const INTERVALS: usize = 16;
    /// `kRoundUpPowerOfTwoStart`, 1 MiB, as a power of two.
    const FIRST_POWER: u32 = 20;

    /// One number of steps for all sizes; 0 and 1 turn the rounding off.
    pub const fn uniform(divisions: u64) -> Self {
        Self::by_interval([divisions; Self::INTERVALS])
    }

    /// One number of steps per interval.
    pub const fn by_interval(divisions: [u64; Self::INTERVALS]) -> Self {
        let mut is_off = true;
        let mut at = 0;
        while at < Self::INTERVALS {
            is_off &= divisions[at] <= 1;
            at += 1;
        }
        Self {
            by_interval: divisions,
            is_off,
        }
    }

    /// Returns true if requests are rounded to whole blocks only.
    #[inline]
    pub const fn is_off(&self) -> bool {
        self.is_off
    }

    /// The number of steps for a request of `bytes`, at least 1 byte.
    #[inline]
    pub fn at(&self, bytes: u64) -> u64 {
        let interval = bytes.ilog2().saturating_sub(Self::FIRST_POWER) as usize;
        self.by_interval[interval.min(Self::INTERVALS - 1)]
    }
}
