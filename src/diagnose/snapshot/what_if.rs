//! Replays a snapshot's requests on an allocator with expandable segments.

use serde::{Deserialize, Serialize};

use super::{Allocations, Category, Snapshot};
use vramscope_engine::allocator::{Action, Block, CachingAllocator, Event, Options};
use vramscope_engine::units::Bytes;

/// Effect of expandable segments on a recording, from replaying its requests on the simulated allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expandable {
    /// Peak allocated bytes of the replay.
    pub allocated: Bytes,
    /// Peak reserved bytes of the replay with the original settings.
    pub reserved: Bytes,
    /// Peak reserved bytes of the replay with expandable segments.
    pub expandable: Bytes,
    /// True if the failed request would have been served; `None` if no request failed.
    pub serves: Option<bool>,
}

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Index of its event.
    pub event: u32,
    /// Bytes requested.
    pub request: Bytes,
    /// Free bytes on the device.
    pub free: Bytes,
}

impl Failure {
    /// The first failed request in a device's recording.
    pub(super) fn of(snapshot: &Snapshot, device: usize) -> Option<Self> {
        let events = &snapshot.devices.get(device)?.events;
        let at = events.iter().position(|event| event.action == Action::Oom)?;
        Some(Self {
            event: at as u32,
            request: Bytes::new(events[at].size.min(1 << 50)),
            free: Bytes::new(events[at].address.min(1 << 50)),
        })
    }
}

impl Expandable {
    /// Replays a device's requests with and without expandable segments; `None` if the recording already used them.
    pub(super) fn of(
        snapshot: &Snapshot,
        device: usize,
        allocations: &Allocations,
        failure: Option<Failure>,
    ) -> Option<Self> {
        let events = &snapshot.devices.get(device)?.events;
        if snapshot.settings.expandable_segments || events.iter().any(|event| event.action == Action::SegmentMap) {
            return None;
        }
        let until = failure.map_or(events.len(), |failure| failure.event as usize);
        let events = &events[..until.min(events.len())];
        let play = |expandable_segments: bool, capacity: Option<Bytes>| {
            let options = Options {
                expandable_segments,
                capacity,
                ..Options::default()
            };
            let mut replayer = Replayer::new(options, allocations);
            replayer.play(events);
            replayer
        };
        let serves = failure.map(|failure| {
            let segments = snapshot
                .segments
                .iter()
                .filter(|segment| segment.device as usize == device);
            let capacity = segments.fold(failure.free, |sum, segment| {
                Bytes::new(sum.get().saturating_add(segment.size.get()))
            });
            let mut replayer = play(true, Some(capacity.min(Bytes::new(1 << 50))));
            !replayer.has_failed && replayer.allocator.alloc(failure.request.get(), 0).is_ok()
        });
        let as_it_was = play(false, None).allocator;
        Some(Self {
            allocated: as_it_was.peak_allocated(),
            reserved: as_it_was.peak_reserved(),
            expandable: play(true, None).allocator.peak_reserved(),
            serves,
        })
    }
}

/// Replays requests and frees on an allocator that chooses its own addresses.
struct Replayer<'a> {
    allocator: CachingAllocator,
    allocations: &'a Allocations,
    /// Block of each allocation, by its index.
    blocks: Vec<Option<(Block, bool)>>,
    streams: Vec<u64>,
    has_failed: bool,
}

impl<'a> Replayer<'a> {
    /// Starts with the blocks that are older than the recording, as far as their sizes are known.
    fn new(options: Options, allocations: &'a Allocations) -> Self {
        let mut replayer = Self {
            allocator: CachingAllocator::new(options),
            allocations,
            blocks: vec![None; allocations.list.len()],
            streams: vec![0],
            has_failed: false,
        };
        for (index, allocation) in allocations.list.iter().enumerate() {
            if allocation.category == Category::Before {
                replayer.alloc(index, allocation.bytes, 0);
            }
        }
        replayer
    }

    fn alloc(&mut self, index: usize, bytes: u64, stream: u32) {
        match self.allocator.alloc(bytes, stream) {
            Ok(block) => self.blocks[index] = Some((block, false)),
            Err(_) => self.has_failed = true,
        }
    }

    fn play(&mut self, events: &[Event]) {
        for (at, event) in (0..).zip(events) {
            let Some(index) = self.allocations.of_event(at) else {
                continue;
            };
            let index = index as usize;
            match (event.action, self.blocks[index]) {
                (Action::Alloc, _) => {
                    let stream = self.stream(event.stream);
                    self.alloc(index, event.size, stream);
                }
                (Action::FreeRequested, Some((block, false))) => {
                    self.allocator.request_free(block);
                    self.blocks[index] = Some((block, true));
                }
                (Action::FreeCompleted, Some((block, was_requested))) => {
                    if !was_requested {
                        self.allocator.request_free(block);
                    }
                    self.allocator.complete_free(block);
                    self.blocks[index] = None;
                }
                _ => {}
            }
        }
    }

    /// Index of a stream; streams beyond the number that a program normally uses share the last one.
    fn stream(&mut self, pointer: u64) -> u32 {
        let known = self.streams.iter().position(|&known| known == pointer);
        let number = known.unwrap_or_else(|| {
            if self.streams.len() < 1024 {
                self.streams.push(pointer);
            }
            self.streams.len() - 1
        });
        number as u32
    }
}
