use std::collections::BTreeMap;

/// Where the driver puts a segment: `cudaMalloc` and `cudaFree`, addresses only.
///
/// Addresses decide between cached blocks of equal size, so they are part of the simulation.
pub trait SegmentSource {
    /// The address of a new segment of `size` bytes, which overlaps no other.
    fn reserve(&mut self, size: u64) -> u64;

    /// The segment of `size` bytes at `address` is given back.
    fn release(&mut self, address: u64, size: u64);
}

/// Addresses as `cudaMalloc` gives them in a fresh process on Linux.
///
/// Segments lie in chunks of 32 MiB, each new chunk below all others; a segment that fits into what
/// an earlier one left of its chunks is put there. The addresses are a function of the segments in
/// place, nothing else.
#[derive(Debug, Clone, Default)]
pub struct DriverAddresses {
    /// Size of each segment in place, by address.
    segments: BTreeMap<u64, u64>,
}

impl DriverAddresses {
    /// Alignment and unit of what the driver reserves at a time.
    const CHUNK: u64 = 32 << 20;
    /// Where the first chunk ends; within the range that Linux gives to mappings.
    const TOP: u64 = 0x7f00_0000_0000;

    /// The lowest gap behind a segment, within that segment's chunks, that takes `size` bytes.
    fn gap(&self, size: u64) -> Option<u64> {
        let ends = self.segments.iter().map(|(address, size)| address + size);
        let starts = self.segments.keys().copied().skip(1).chain([Self::TOP]);
        ends.zip(starts)
            .find(|&(end, start)| end + size <= start.min(end.next_multiple_of(Self::CHUNK)))
            .map(|(end, _)| end)
    }

    fn below_all(&self, size: u64) -> u64 {
        let lowest = self
            .segments
            .first_key_value()
            .map_or(Self::TOP, |(&address, _)| address);
        (lowest - size) / Self::CHUNK * Self::CHUNK
    }
}

impl SegmentSource for DriverAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        let address = self.gap(size).unwrap_or_else(|| self.below_all(size));
        self.segments.insert(address, size);
        address
    }

    fn release(&mut self, address: u64, _size: u64) {
        self.segments.remove(&address);
    }
}
