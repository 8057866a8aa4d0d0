//! Allocations of a memory snapshot, in order.

use std::ops::Range;

use super::AllocationSite;
use crate::Snapshot;
use crate::snapshot::{Allocations, StackId, place_of};
use vramscope_engine::allocator::Action;
use vramscope_engine::units::Bytes;

/// Allocations of one device, as its snapshot has them: the other side of a comparison with
/// [`RecordingSide`](super::RecordingSide).
pub(super) struct SnapshotSide<'a> {
    pub device: u32,
    /// True if the snapshot began with an empty allocator.
    pub is_from_start: bool,
    /// Number of the event, requested bytes, and stack of each allocation.
    pub allocations: Vec<(u32, u64, StackId)>,
    /// Live bytes after each event.
    live: Vec<(u32, u64)>,
    snapshot: &'a Snapshot,
}

impl<'a> SnapshotSide<'a> {
    /// Collects the allocations of one device of a snapshot.
    pub fn of(snapshot: &'a Snapshot, device: usize) -> Self {
        let allocations = Allocations::of(snapshot, device);
        let (events, stacks) = (&snapshot.devices[device].events, snapshot.stacks_of.get(device));
        let stack = |at: usize| stacks.and_then(|stacks| stacks.get(at)).copied().unwrap_or_default();
        let made = events
            .iter()
            .enumerate()
            .filter(|(_, event)| event.action == Action::Alloc);
        let mut live = Vec::new();
        allocations.walk(|at, total| live.push((at, total)));
        Self {
            device: device as u32,
            is_from_start: allocations.is_from_start,
            allocations: made.map(|(at, event)| (at as u32, event.size, stack(at))).collect(),
            live,
            snapshot,
        }
    }

    /// Returns the bytes of each allocation.
    pub fn sizes(&self) -> Vec<u64> {
        self.allocations.iter().map(|(_, bytes, _)| *bytes).collect()
    }

    /// Returns the event of an allocation, or the end if there are no more.
    pub fn event(&self, at: usize) -> u32 {
        self.allocations
            .get(at)
            .or(self.allocations.last())
            .map_or(0, |(event, ..)| *event)
    }

    /// Describes an allocation.
    pub fn made(&self, at: usize) -> AllocationSite {
        let (_, bytes, stack) = self.allocations[at];
        let place = place_of(self.snapshot.stacks.frames(stack));
        AllocationSite {
            bytes: Bytes::new(bytes),
            place: if place.is_empty() {
                "no Python (backward, or a library)".into()
            } else {
                place
            },
        }
    }

    /// Returns the highest live bytes between two allocations.
    pub fn peak(&self, allocations: Range<usize>) -> Bytes {
        let (begin, end) = (
            self.event(allocations.start),
            self.event(allocations.end.saturating_sub(1)),
        );
        let within = self.live.iter().filter(|(at, _)| (begin..=end).contains(at));
        Bytes::new(within.map(|(_, total)| *total).max().unwrap_or_default())
    }
}
