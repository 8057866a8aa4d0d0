//! Segment addresses that ascend.

use super::segment_source::SegmentSource;

/// Addresses that ascend in the order in which segments are made, unlike those of a fresh process, which mostly descend
/// ([`DriverAddresses`](super::DriverAddresses)).
#[derive(Debug, Clone, Default)]
pub struct AscendingAddresses {
    end: u64,
}

impl SegmentSource for AscendingAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        let address = self.end;
        self.end += size;
        address
    }

    fn release(&mut self, _address: u64, _size: u64) {}
}
