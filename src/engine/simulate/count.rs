//! Counts the peaks of a recorded run without the allocator: live bytes in blocks of 512.
//!
//! The allocator adds at most a megabyte to a large block. Searches filter setups by these counts, and replay only the
//! setups that they suggest through the allocator.

use super::Recording;
use crate::allocator::MIN_BLOCK;
use crate::tape::log::Event;
use crate::units::Bytes;

/// Live bytes, of the steady step unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Peak of forward and backward.
    pub pass: Bytes,
    /// Peak of the update.
    pub update: Bytes,
    /// Live bytes at the end of the step.
    pub end: Bytes,
    /// Peak of the whole run.
    pub highest: Bytes,
}

/// Counts the construction of the model, the first step and the steady one.
pub fn count(recording: &Recording) -> Counted {
    let mut live = Live {
        sizes: recording
            .log
            .allocations
            .iter()
            .map(|allocation| allocation.bytes.next_multiple_of(MIN_BLOCK))
            .collect(),
        total: 0,
        highest: 0,
    };
    let before = live.play(&recording.build).max(live.play(&recording.first.events));
    let step = &recording.steady;
    let (pass, update) = step.events.split_at(step.marks.after_backward);
    let pass = live.play(pass);
    let update = live.play(update);
    Counted {
        pass,
        update,
        end: Bytes::new(live.total),
        highest: before.max(pass).max(update),
    }
}

struct Live {
    sizes: Vec<u64>,
    total: u64,
    highest: u64,
}

impl Live {
    /// Counts some events and returns the highest total.
    fn play(&mut self, events: &[Event]) -> Bytes {
        self.highest = self.total;
        for event in events {
            let size = self.sizes[event.storage() as usize];
            if event.is_alloc() {
                self.total += size;
                self.highest = self.highest.max(self.total);
            } else {
                self.total = self.total.saturating_sub(size);
            }
        }
        Bytes::new(self.highest)
    }
}
