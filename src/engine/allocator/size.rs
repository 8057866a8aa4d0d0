//! Rounding of requests and sizes of segments.
//!
//! Constants and functions of `c10/cuda/CUDACachingAllocator.cpp` and `c10/core/AllocatorConfig.h`.

use super::Options;

/// `kMinBlockSize`: every block is a multiple of this many bytes.
pub const MIN_BLOCK: u64 = 512;
/// `kSmallSize`: requests up to here are served from the small pool.
pub const SMALL_SIZE: u64 = 1 << 20;
/// `kSmallBuffer`: segment size, and granule of expandable segments, of the small pool.
pub const SMALL_SEGMENT: u64 = 2 << 20;
/// `large_segment_size`: segment size of medium requests, and granule of expandable segments, of the large pool.
pub const LARGE_SEGMENT: u64 = 20 << 20;
/// `kMinLargeAlloc`: requests from here on get a segment of their own.
pub const MIN_LARGE_REQUEST: u64 = 10 << 20;
/// `kRoundLarge`: such a segment's size is a multiple of this many bytes.
pub const LARGE_ROUNDING: u64 = 2 << 20;

/// The two halves of the cache: `DeviceCachingAllocator::small_blocks` and `large_blocks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Requests up to 1 MiB, packed into segments of 2 MiB.
    Small,
    /// Everything above.
    Large,
}

impl PoolKind {
    /// The pool that serves a request of `size` bytes, rounded (`get_pool`).
    #[inline]
    pub const fn of(size: u64) -> Self {
        if size <= SMALL_SIZE { Self::Small } else { Self::Large }
    }

    /// Bytes that an expandable segment of this pool maps at a time (`find_expandable_block`).
    pub const fn granule(self) -> u64 {
        match self {
            Self::Small => SMALL_SEGMENT,
            Self::Large => LARGE_SEGMENT,
        }
    }
}

/// Bytes of the block that a request of `bytes` needs (`round_size`).
#[inline]
pub fn round_size(bytes: u64, options: &Options) -> u64 {
    if bytes < MIN_BLOCK {
        return MIN_BLOCK;
    }
    if options.roundup_power2_divisions.is_off() {
        return bytes.next_multiple_of(MIN_BLOCK);
    }
    let divisions = options.roundup_power2_divisions.at(bytes);
    if divisions > 1 && bytes > MIN_BLOCK * divisions {
        round_up_to_division(bytes, divisions)
    } else {
        bytes.next_multiple_of(MIN_BLOCK)
    }
}

/// Rounds up to one of `divisions` equal steps between two powers of two (`roundup_power2_next_division`).
///
/// With 4 divisions 1200 becomes 1280: the steps from 1024 to 2048 are 1024, 1280, 1536, 1792.
fn round_up_to_division(bytes: u64, divisions: u64) -> u64 {
    let floor = 1 << bytes.ilog2();
    match floor >> divisions.ilog2() {
        0 => floor << 1,
        step => bytes.next_multiple_of(step),
    }
}

/// Bytes asked of the driver when no cached block serves a request of `size` bytes, rounded (`get_allocation_size`).
#[inline]
pub const fn segment_size(size: u64) -> u64 {
    if size <= SMALL_SIZE {
        SMALL_SEGMENT
    } else if size < MIN_LARGE_REQUEST {
        LARGE_SEGMENT
    } else {
        size.next_multiple_of(LARGE_ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::RoundupDivisions;

    #[test]
    fn requests_round_to_whole_units_of_512() {
        let options = Options::default();
        for (bytes, rounded) in [(0, 512), (1, 512), (512, 512), (513, 1024), (1 << 20, 1 << 20)] {
            assert_eq!(round_size(bytes, &options), rounded, "{bytes}");
        }
    }

    #[test]
    fn divisions_of_a_power_of_two_round_to_steps() {
        let options = Options {
            roundup_power2_divisions: RoundupDivisions::uniform(4),
            ..Options::default()
        };
        let mib = 1 << 20;
        for (bytes, rounded) in [
            (1200, 1536),
            (5 * mib + 1, 6 * mib),
            (9 * mib, 10 * mib),
            (8 * mib, 8 * mib),
        ] {
            assert_eq!(round_size(bytes, &options), rounded, "{bytes}");
        }
        assert_eq!(round_up_to_division(1200, 4), 1280);
    }

    #[test]
    fn segments_are_2_mib_20_mib_or_the_request_rounded_to_2_mib() {
        let mib = 1 << 20;
        for (size, segment) in [
            (mib, 2 * mib),
            (mib + 512, 20 * mib),
            (10 * mib - 512, 20 * mib),
            (10 * mib, 10 * mib),
            (21 * mib, 22 * mib),
        ] {
            assert_eq!(segment_size(size), segment, "{size}");
        }
    }
}
