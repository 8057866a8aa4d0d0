//! Segment addresses in a pseudo-random order.

use super::segment_source::SegmentSource;
use super::size::SMALL_SEGMENT;
use super::xorshift::Xorshift;

/// Addresses in an order drawn from a seed. The real order depends on everything that the process and the driver did
/// before, which is unknown for a future run.
///
/// The large segments have the same order with and without small ones between them.
#[derive(Debug, Clone)]
pub struct ShuffledAddresses {
    slots: Xorshift,
    /// Slots of the large segments in place, unordered: there are hundreds at most, and lookups are rare.
    taken: Vec<u64>,
    /// End of the small segments, which all have one size.
    small_end: u64,
}

/// Address space of one large segment: more than any card has.
const SLOT: u64 = 1 << 40;
/// Slots for large segments; small ones are placed below them.
const SLOTS: u64 = 1 << 20;

impl ShuffledAddresses {
    /// Makes the order of this seed.
    pub fn new(number: u64) -> Self {
        Self {
            slots: Xorshift::new(number),
            taken: Vec::new(),
            small_end: 0,
        }
    }
}

impl SegmentSource for ShuffledAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        if size <= SMALL_SEGMENT {
            let address = self.small_end;
            self.small_end += size;
            return address;
        }
        loop {
            let slot = 1 + self.slots.next() % SLOTS;
            if !self.taken.contains(&slot) {
                self.taken.push(slot);
                return slot * SLOT;
            }
        }
    }

    fn release(&mut self, address: u64, _size: u64) {
        self.taken.retain(|&slot| slot != address / SLOT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_gives_one_order_and_another_number_another() {
        let order = |number, smalls: usize| {
            let mut source = ShuffledAddresses::new(number);
            let addresses: Vec<u64> = (0..12)
                .map(|_| {
                    (0..smalls).for_each(|_| {
                        source.reserve(SMALL_SEGMENT);
                    });
                    source.reserve(20 << 20)
                })
                .collect();
            let mut distinct = addresses.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), addresses.len());
            addresses
        };
        assert_eq!(order(3, 0), order(3, 5));
        assert_ne!(order(3, 0), order(4, 0));
    }
}
