//! The same requests on an allocator with expandable segments.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Allocations, Category, Snapshot};
use crate::allocator::{Action, Block, CachingAllocator, Options};
use crate::units::Bytes;

/// What expandable segments would have done with a recording, by playing its requests through the simulated
/// allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expandable {
    /// Highest reserved bytes as it was, simulated.
    pub reserved: Bytes,
    /// Highest reserved bytes with expandable segments.
    pub expandable: Bytes,
    /// Whether the request that failed would have been served; absent where none failed.
    pub serves: Option<bool>,
}

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Number of its event.
    pub event: u32,
    /// What was asked for.
    pub request: Bytes,
    /// What the device had free.
    pub free: Bytes,
}

impl Failure {
    /// The first failed request of a device's recording.
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
    /// Plays a device's requests twice; `None` where the recording already used expandable segments.
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
        let capacity = failure.map(|failure| {
            let segments = snapshot
                .segments
                .iter()
                .filter(|segment| segment.device as usize == device);
            segments.fold(failure.free, |sum, segment| {
                Bytes::new(sum.get().saturating_add(segment.size.get()))
            })
        });
        let play = |expandable_segments: bool, capacity: Option<Bytes>| {
            let options = Options {
                expandable_segments,
                capacity,
                ..Options::default()
            };
            Player::new(options, allocations).play(&events[..until])
        };
        let serves = failure.zip(capacity).map(|(failure, capacity)| {
            let mut player = play(true, Some(capacity));
            !player.failed && player.allocator.alloc(failure.request.get(), 0).is_ok()
        });
        Some(Self {
            reserved: play(false, None).allocator.peak_reserved(),
            expandable: play(true, None).allocator.peak_reserved(),
            serves,
        })
    }
}

struct Player {
    allocator: CachingAllocator,
    live: HashMap<u64, Block>,
    awaiting: HashMap<u64, Block>,
    streams: Vec<u64>,
    failed: bool,
}

impl Player {
    /// With what is older than the recording in place, as far as its sizes are known.
    fn new(options: Options, allocations: &Allocations) -> Self {
        let mut allocator = CachingAllocator::new(options);
        let older = allocations.list.iter().filter(|a| a.category == Category::Before);
        let mut failed = false;
        for allocation in older {
            failed |= allocator.alloc(allocation.bytes, 0).is_err();
        }
        Self {
            allocator,
            live: HashMap::new(),
            awaiting: HashMap::new(),
            streams: vec![0],
            failed,
        }
    }

    fn play(mut self, events: &[crate::allocator::Event]) -> Self {
        for event in events {
            match event.action {
                Action::Alloc => {
                    let stream = self.stream(event.stream);
                    match self.allocator.alloc(event.size.min(1 << 50), stream) {
                        Ok(block) => drop(self.live.insert(event.address, block)),
                        Err(_) => self.failed = true,
                    }
                }
                Action::FreeRequested => {
                    if let Some(block) = self.live.remove(&event.address) {
                        self.allocator.request_free(block);
                        // A block that was never completed at this address stays awaited.
                        self.awaiting.insert(event.address, block);
                    }
                }
                Action::FreeCompleted => {
                    if let Some(block) = self.awaiting.remove(&event.address) {
                        self.allocator.complete_free(block);
                    } else if let Some(block) = self.live.remove(&event.address) {
                        self.allocator.free(block);
                    }
                }
                _ => {}
            }
        }
        self
    }

    fn stream(&mut self, pointer: u64) -> u32 {
        let known = self.streams.iter().position(|&known| known == pointer);
        known.unwrap_or_else(|| {
            if self.streams.len() < 1024 {
                self.streams.push(pointer);
            }
            self.streams.len() - 1
        }) as u32
    }
}
