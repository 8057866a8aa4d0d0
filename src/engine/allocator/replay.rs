//! Recorded events through the simulator.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::caching::{Block, CachingAllocator};
use super::options::Options;
use super::segment_source::SegmentSource;
use super::trace::{Action, Event};
use crate::units::Bytes;

/// What a replay found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Replay {
    /// Highest allocated bytes that the simulator reached.
    pub allocated_peak: Bytes,
    /// Highest reserved bytes that the simulator reached.
    pub reserved_peak: Bytes,
    /// Allocations replayed.
    pub allocs: u64,
    /// Allocations that the simulator put elsewhere than PyTorch did, and segments that one of the
    /// two made or gave back without the other.
    pub address_mismatches: u64,
}

/// Replays recorded events through a simulator made with `options`.
///
/// Requests and frees drive the simulator; of a segment it learns the recorded address and the
/// moment when it was given back, since a trace does not say what else was on the card. Frees of
/// blocks from before the recording are skipped.
pub fn replay(events: impl IntoIterator<Item = Event>, options: Options) -> Replay {
    let mut player = Player::new(options);
    for event in events {
        player.play(event);
    }
    player.finish()
}

/// Addresses of segments as the trace gives them.
#[derive(Debug, Default)]
struct RecordedAddresses {
    /// Segments of the trace that the simulator has not made yet: address and bytes.
    pending: VecDeque<(u64, u64)>,
    /// Segments that the simulator made and the trace did not.
    surplus: u64,
}

impl RecordedAddresses {
    /// Above every device address, so that a surplus segment overlaps none of the trace's.
    const SURPLUS_BASE: u64 = 1 << 48;
    /// Room for one surplus segment: more than any card's memory.
    const SURPLUS_ROOM: u64 = 1 << 44;
}

impl SegmentSource for RecordedAddresses {
    fn reserve(&mut self, size: u64) -> u64 {
        if let Some(&(address, recorded)) = self.pending.front()
            && recorded == size
        {
            self.pending.pop_front();
            return address;
        }
        self.surplus += 1;
        Self::SURPLUS_BASE + self.surplus * Self::SURPLUS_ROOM
    }

    fn release(&mut self, _address: u64, _size: u64) {}
}

/// A replay in progress.
struct Player {
    allocator: CachingAllocator<RecordedAddresses>,
    /// Live blocks by their address in the trace.
    live: HashMap<u64, Block>,
    allocs: u64,
    mismatches: u64,
}

impl Player {
    fn new(options: Options) -> Self {
        // What the driver refused shows in the trace; the simulator takes it from there.
        let options = Options {
            limit: None,
            capacity: None,
            ..options
        };
        let allocator = CachingAllocator::with_source(options, RecordedAddresses::default());
        Self {
            allocator,
            live: HashMap::new(),
            allocs: 0,
            mismatches: 0,
        }
    }

    fn play(&mut self, event: Event) {
        match event.action {
            Action::Alloc => self.alloc(event),
            Action::FreeRequested => {
                if let Some(&block) = self.live.get(&event.address) {
                    self.allocator.request_free(block);
                }
            }
            Action::FreeCompleted => {
                if let Some(block) = self.live.remove(&event.address) {
                    self.allocator.complete_free(block);
                }
            }
            Action::SegmentAlloc => self
                .allocator
                .source_mut()
                .pending
                .push_back((event.address, event.size)),
            Action::SegmentFree => self.mismatches += u64::from(!self.allocator.release_segment(event.address)),
            Action::SegmentMap | Action::SegmentUnmap => {}
            Action::Oom | Action::Snapshot | Action::UserDefined => {}
        }
    }

    fn alloc(&mut self, event: Event) {
        self.allocs += 1;
        let Ok(block) = self.allocator.alloc(event.size, event.stream) else {
            self.mismatches += 1;
            return;
        };
        if self.allocator.address(block) != event.address {
            self.mismatches += 1;
        }
        self.mismatches += self.allocator.source_mut().pending.drain(..).count() as u64;
        self.live.insert(event.address, block);
    }

    fn finish(self) -> Replay {
        Replay {
            allocated_peak: self.allocator.peak_allocated(),
            reserved_peak: self.allocator.peak_reserved(),
            allocs: self.allocs,
            address_mismatches: self.mismatches,
        }
    }
}
