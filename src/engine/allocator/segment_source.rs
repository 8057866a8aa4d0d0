/// Where the driver puts a segment: `cudaMalloc` and `cudaFree`, addresses only.
///
/// Addresses decide between cached blocks of equal size, so they are part of the simulation.
pub trait SegmentSource {
    /// The address of a new segment of `size` bytes, a multiple of 2 MiB; it overlaps no other.
    fn reserve(&mut self, size: u64) -> u64;

    /// The segment or range of `size` bytes at `address` is given back.
    fn release(&mut self, address: u64, size: u64);

    /// The address of `size` bytes of address space for an expandable segment (`cuMemAddressReserve`).
    fn reserve_range(&mut self, size: u64) -> u64 {
        self.reserve(size)
    }

    /// `size` bytes at `address`, within such a range, get memory (`cuMemMap`).
    fn map(&mut self, _address: u64, _size: u64) {}
}

/// Segments are rare: looking up where they come from costs nothing, and one allocator serves all sources.
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
