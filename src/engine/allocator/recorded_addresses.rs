//! Segment addresses taken from a recorded trace.

use std::collections::VecDeque;

use super::segment_source::SegmentSource;

/// Segment addresses as a trace recorded them.
#[derive(Debug, Default)]
pub(super) struct RecordedAddresses {
    /// Address and bytes of segments that the trace reserved and the simulator has not yet.
    pending: VecDeque<(u64, u64)>,
    /// Bytes that the simulator reserved and the trace did not.
    surplus: u64,
    mismatches: u64,
}

impl RecordedAddresses {
    /// Addresses have 57 bits (x86-64 with five levels of page tables).
    const DEVICE_END: u64 = 1 << 57;
    /// Above every device address, so that surplus segments overlap none of the trace's.
    const SURPLUS: u64 = 1 << 62;

    /// Queues the trace's reservation of `size` bytes at `address`.
    pub fn record(&mut self, address: u64, size: u64) {
        if address.max(size) < Self::DEVICE_END {
            self.pending.push_back((address, size));
        } else {
            self.mismatches += 1;
        }
    }

    /// Drops reservations that the simulator did not make, counting each as a mismatch: the request behind them is
    /// over.
    pub fn settle(&mut self) {
        self.mismatches += self.pending.len() as u64;
        self.pending.clear();
    }

    /// Number of reservations that only one of trace and simulator made.
    pub fn mismatches(&self) -> u64 {
        self.mismatches
    }

    fn surplus(&mut self, size: u64) -> u64 {
        let address = Self::SURPLUS.wrapping_add(self.surplus);
        self.surplus = self.surplus.wrapping_add(size);
        address
    }
}

impl SegmentSource for RecordedAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        match self.pending.front() {
            Some(&(address, recorded)) if recorded == size => {
                self.pending.pop_front();
                address
            }
            _ => {
                self.mismatches += 1;
                self.surplus(size)
            }
        }
    }

    fn release(&mut self, _address: u64, _size: u64) {}

    /// Returns the address of the range's first mapped memory, at which the range begins.
    fn reserve_range(&mut self, size: u64) -> u64 {
        match self.pending.front() {
            Some(&(address, _)) => address,
            None => self.surplus(size),
        }
    }

    fn map(&mut self, address: u64, size: u64) {
        if self.pending.front() == Some(&(address, size)) {
            self.pending.pop_front();
        } else {
            self.mismatches += 1;
        }
    }
}
