//! Interface of sources of segment addresses.

/// Addresses of segments, as the driver assigns them: `cudaMalloc` and `cudaFree`.
///
/// Addresses decide between cached blocks of equal size, so they are part of the simulation.
pub trait SegmentSource {
    /// Returns the address of a new segment of `size` bytes, a multiple of 2 MiB; it overlaps no other.
    fn reserve(&mut self, size: u64) -> u64;

    /// Releases the segment or range of `size` bytes at `address`.
    fn release(&mut self, address: u64, size: u64);

    /// Returns the address of `size` bytes of address space for an expandable segment (`cuMemAddressReserve`).
    fn reserve_range(&mut self, size: u64) -> u64 {
        self.reserve(size)
    }

    /// Maps `size` bytes at `address` within such a range (`cuMemMap`).
    fn map(&mut self, _address: u64, _size: u64) {}
}

/// Segments are rare, so dynamic dispatch costs nothing, and one compiled allocator serves all sources.
impl SegmentSource for Box<dyn SegmentSource> {
    fn reserve(&mut self, size: u64) -> u64 {
        (**self).reserve(size)
    }

    fn release(&mut self, address: u64, size: u64) {
        (**self).release(address, size);
    }

    fn reserve_range(&mut self, size: u64) -> u64 {
        (**self).reserve_range(size)
    }

    fn map(&mut self, address: u64, size: u64) {
        (**self).map(address, size);
    }
}
