//! Segment addresses as `cudaMalloc` assigns them.

use super::gaps::{CHUNK, Gaps, chunk_start};
use super::segment_source::SegmentSource;

/// Addresses that `cudaMalloc` returns in a fresh process on Linux, as seen in recorded traces (CUDA 13, H200).
///
/// The driver takes address space in chunks of 32 MiB. The first [`Self::FIRST_CHUNKS`] are adjacent and fill upwards;
/// each run of chunks after them is placed below all before it, and the part of its last chunk that a segment leaves
/// over goes to the next segment that fits, the lowest such gap first.
///
/// Between equal requests the addresses depend on the segments in place only, not on their history.
#[derive(Debug, Clone)]
pub struct DriverAddresses {
    /// Address and bytes of each segment in place, highest first: most new ones are below all others.
    segments: Vec<(u64, u64)>,
    gaps: Gaps,
    /// True if `gaps` is out of date after a release.
    stale: bool,
}

/// Upper end of all addresses, within the range that Linux gives to mappings.
const TOP: u64 = 0x7f00_0000_0000;

impl DriverAddresses {
    /// Chunks that the driver holds from the start.
    pub const FIRST_CHUNKS: u64 = 13;
    const FIRST: u64 = TOP - Self::FIRST_CHUNKS * CHUNK;

    /// Index of the segment at this address, or the index at which it would be inserted.
    fn place(&self, address: u64) -> usize {
        self.segments.partition_point(|&(other, _)| other > address)
    }

    /// Lower end of the chunks in use, below which new chunks go.
    fn lowest(&self) -> u64 {
        self.segments
            .last()
            .map_or(Self::FIRST, |&(address, _)| chunk_start(address).min(Self::FIRST))
    }

    /// A new run of chunks: the highest free one between segments, else below all.
    fn new_chunks(&mut self, size: u64) -> u64 {
        let size = size.next_multiple_of(CHUNK);
        self.gaps
            .take_chunks(size)
            .unwrap_or_else(|| self.lowest().saturating_sub(size))
    }

    /// Finds the gaps between the segments in place.
    fn survey(&mut self) {
        self.gaps = Gaps::default();
        let ascending = self.segments.iter().rev();
        let starts = ascending.clone().map(|(address, _)| *address).skip(1).chain([TOP]);
        let ends = ascending.map(|(address, size)| address + size);
        let between: Vec<(u64, u64)> = ends.zip(starts).collect();
        for (start, end) in between {
            self.gaps.add(start, end, Self::FIRST);
        }
        let lowest = self.segments.last().map_or(TOP, |&(address, _)| address);
        self.gaps.add(chunk_start(lowest).min(Self::FIRST), lowest, Self::FIRST);
        self.stale = false;
    }
}

impl Default for DriverAddresses {
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            gaps: Gaps::default(),
            stale: true,
        }
    }
}

impl SegmentSource for DriverAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        if self.stale {
            self.survey();
        }
        let address = self.gaps.take(size).unwrap_or_else(|| {
            let address = self.new_chunks(size);
            self.gaps.hold(address + size, address + size.next_multiple_of(CHUNK));
            address
        });
        self.segments.insert(self.place(address), (address, size));
        address
    }

    fn release(&mut self, address: u64, _size: u64) {
        self.segments.retain(|&(other, _)| other != address);
        self.stale = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_first_chunks_fill_upwards() {
        let mut driver = DriverAddresses::default();
        let addresses = [20, 20, 2].map(|mib| driver.reserve(mib * MIB) - DriverAddresses::FIRST);
        assert_eq!(addresses, [0, 20 * MIB, 40 * MIB]);
    }

    #[test]
    fn later_chunks_go_down_and_their_rest_is_filled() {
        let mut driver = DriverAddresses::default();
        let first = driver.reserve(DriverAddresses::FIRST_CHUNKS * CHUNK);
        let offsets = [20, 20, 2, 20, 16, 16].map(|mib| (first - driver.reserve(mib * MIB)) / MIB);
        // The 2 MiB follow the second segment; the last 16 MiB follow the 16 MiB before.
        assert_eq!(offsets, [32, 64, 44, 96, 128, 112]);
    }

    proptest! {
        #[test]
        fn segments_never_overlap_and_history_does_not_matter(
            ops in proptest::collection::vec((any::<bool>(), 1_u64..300, any::<prop::sample::Index>()), 1..60),
        ) {
            let mut driver = DriverAddresses::default();
            for (release, units, which) in ops {
                if release && !driver.segments.is_empty() {
                    let (address, size) = driver.segments[which.index(driver.segments.len())];
                    driver.release(address, size);
                    continue;
                }
                let mut surveyed = driver.clone();
                surveyed.stale = true;
                let size = units * Gaps::UNIT;
                let address = driver.reserve(size);
                prop_assert_eq!(surveyed.reserve(size), address);
                let at = driver.place(address);
                let (above, below) = (at.checked_sub(1).map(|i| driver.segments[i]), driver.segments.get(at + 1));
                prop_assert!(above.is_none_or(|(start, _)| address + size <= start));
                prop_assert!(below.is_none_or(|&(start, size)| start + size <= address));
            }
        }
    }
}
