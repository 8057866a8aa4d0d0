//! Allocations and frees that the allocator of a fresh process serves, and the highest bytes meanwhile.

use super::super::Replayer;
use super::super::SimulateError;
use crate::allocator::{CachingAllocator, Options};
use crate::tape::Tape;
use crate::tape::log::{Event, StorageId};
use crate::units::Bytes;

/// Highest bytes of an allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peaks {
    pub allocated: Bytes,
    pub reserved: Bytes,
}

/// A sequence of allocations and frees.
#[derive(Default)]
pub(super) struct Script {
    requests: Vec<u64>,
    events: Vec<Event>,
}

impl Script {
    /// Allocates memory; none for 0 bytes.
    pub fn alloc(&mut self, bytes: u64) -> Option<StorageId> {
        let id = self.requests.len() as StorageId;
        (bytes > 0).then(|| {
            self.requests.push(bytes);
            self.events.push(Event::alloc(id));
            id
        })
    }

    /// Frees memory.
    pub fn free(&mut self, id: Option<StorageId>) {
        self.events.extend(id.map(Event::free));
    }

    /// Highest bytes.
    pub fn peaks(self) -> Result<Peaks, SimulateError> {
        peaks(self.requests, &self.events, 0)
    }
}

/// Highest bytes of the recorded events from `from` on; what came before is there, with an empty cache.
pub(super) fn peaks_since(t: &Tape, from: usize) -> Result<Peaks, SimulateError> {
    let (requests, events) = t.read_log(|log| (log.allocations.requests(), log.events.clone()));
    peaks(requests, &events, from)
}

fn peaks(requests: Vec<u64>, events: &[Event], from: usize) -> Result<Peaks, SimulateError> {
    let allocator = CachingAllocator::new(Options::default());
    let mut replayer = Replayer::new(requests.into_iter(), &[], allocator);
    replayer.play(&events[..from])?;
    if from > 0 {
        replayer.empty_cache();
        replayer.reset_peaks();
    }
    replayer.play(&events[from..])?;
    Ok(Peaks {
        allocated: replayer.allocator().peak_allocated(),
        reserved: replayer.allocator().peak_reserved(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_holds_what_lives_at_the_same_time() {
        let mut script = Script::default();
        let first = script.alloc(3 << 20);
        let second = script.alloc(5 << 20);
        script.free(second);
        script.free(first);
        script.alloc(6 << 20);
        assert_eq!(script.alloc(0), None);
        assert_eq!(script.peaks().unwrap().allocated, Bytes::mib(8));
    }
}
