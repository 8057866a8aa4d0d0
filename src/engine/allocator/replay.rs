//! Replays recorded events through the simulator.

use std::collections::HashMap;

use serde::Serialize;

use super::caching::{Block, CachingAllocator};
use super::options::Options;
use super::recorded_addresses::RecordedAddresses;
use super::trace::{Action, Event};
use crate::units::Bytes;

/// Result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Replay {
    /// Highest allocated bytes that the simulator reached.
    pub allocated_peak: Bytes,
    /// Highest reserved bytes that the simulator reached.
    pub reserved_peak: Bytes,
    /// Allocations replayed.
    pub allocs: u64,
    /// Allocations that the simulator placed at another address than PyTorch, and memory that only one of the two
    /// reserved or released.
    pub address_mismatches: u64,
}

/// Replays recorded events through a simulator made with `options`, whose limits are set aside.
///
/// Requests and frees drive the simulator. The recorded segment events only set each segment's address and the moment
/// of its release, since a trace does not say what else was on the card. Frees of blocks from before the recording are
/// skipped.
pub fn replay(events: impl IntoIterator<Item = Event>, options: Options) -> Replay {
    let mut replayer = Replayer::new(options);
    for event in events {
        replayer.play(event);
    }
    replayer.finish()
}

/// A replay in progress.
struct Replayer {
    allocator: CachingAllocator<RecordedAddresses>,
    /// Live blocks by their address in the trace.
    live: HashMap<u64, Block>,
    /// Freed blocks, by their address in the trace, that another stream still used.
    awaiting: HashMap<u64, Block>,
    /// The trace's streams, which are pointers, in the order of their appearance.
    streams: Vec<u64>,
    allocs: u64,
    mismatches: u64,
}

impl Replayer {
    /// Upper limit of streams, more than a program uses; PyTorch's own pools hold 32 each.
    const MOST_STREAMS: usize = 1024;

    fn new(options: Options) -> Self {
        let options = Options {
            limit: None,
            capacity: None,
            ..options
        };
        Self {
            allocator: CachingAllocator::with_source(options, RecordedAddresses::default()),
            live: HashMap::new(),
            awaiting: HashMap::new(),
            streams: Vec::new(),
            allocs: 0,
            mismatches: 0,
        }
    }

    fn play(&mut self, event: Event) {
        let Event {
            action, address, size, ..
        } = event;
        match action {
            Action::Alloc => self.alloc(event),
            Action::FreeRequested => self.request_free(address),
            Action::FreeCompleted => self.complete_free(address),
            Action::SegmentAlloc | Action::SegmentMap => self.allocator.source_mut().record(address, size),
            Action::SegmentFree => self.expect(|allocator| allocator.release_segment(address, size)),
            Action::SegmentUnmap => self.expect(|allocator| allocator.unmap_segment(address, size)),
            Action::Oom | Action::Snapshot | Action::UserDefined => {}
        }
    }

    fn alloc(&mut self, event: Event) {
        self.allocs += 1;
        let address = self.stream(event.stream).and_then(|stream| {
            let block = self.allocator.alloc(event.size, stream).ok()?;
            self.live.insert(event.address, block);
            Some(self.allocator.address(block))
        });
        self.mismatches += u64::from(address != Some(event.address));
        self.allocator.source_mut().settle();
    }

    fn request_free(&mut self, address: u64) {
        if let Some(block) = self.live.remove(&address) {
            self.allocator.request_free(block);
            self.awaiting.insert(address, block);
        }
    }

    fn complete_free(&mut self, address: u64) {
        if let Some(block) = self.awaiting.remove(&address) {
            self.allocator.complete_free(block);
        }
    }

    fn expect(&mut self, step: impl FnOnce(&mut CachingAllocator<RecordedAddresses>) -> bool) {
        self.mismatches += u64::from(!step(&mut self.allocator));
    }

    /// Number of a stream; `None` when there are too many.
    fn stream(&mut self, pointer: u64) -> Option<u32> {
        let known = self.streams.iter().position(|&known| known == pointer);
        let index = match known {
            Some(index) => index,
            None if self.streams.len() == Self::MOST_STREAMS => return None,
            None => {
                self.streams.push(pointer);
                self.streams.len() - 1
            }
        };
        Some(index as u32)
    }

    fn finish(mut self) -> Replay {
        self.allocator.source_mut().settle();
        Replay {
            allocated_peak: self.allocator.peak_allocated(),
            reserved_peak: self.allocator.peak_reserved(),
            allocs: self.allocs,
            address_mismatches: self.mismatches + self.allocator.source_mut().mismatches(),
        }
    }
}
