//! The part of a recorded run that the large pool serves.

use super::replayer::Replayer;
use super::steps::Recording;
use crate::allocator::{CachingAllocator, Options, PoolKind, SegmentSource};
use crate::tape::log::{Event, StorageId};

/// The large storages of a run, renumbered, and their allocations and frees. Rounding never moves a request from one
/// pool to the other.
///
/// The small pool's segments all have one size, 2 MiB, so their order hardly matters: for another order of segments
/// only the large pool is replayed again.
pub(super) struct LargePool {
    /// Bytes that each large storage requests.
    requests: Vec<u64>,
    /// Large storages that are not on the first stream, with their stream.
    streams: Vec<(StorageId, u32)>,
    /// New number of each storage of the run, or [`SMALL`].
    numbers: Vec<StorageId>,
    /// Events of making the model and of preparing it.
    pub build: Vec<Event>,
    /// Numbers of those events before each call of `torch.cuda.empty_cache()`.
    pub emptied: Vec<usize>,
    /// Events of the first step.
    pub first: Vec<Event>,
    /// Events of every step after the first.
    pub steady: Vec<Event>,
}

/// Stands for the number of a storage of the small pool.
const SMALL: StorageId = StorageId::MAX;

impl LargePool {
    /// Selects the large storages of a recorded run.
    pub fn of(recording: &Recording) -> Self {
        let mut large = Vec::new();
        let mut number = |request: u64| match PoolKind::of(request) {
            PoolKind::Small => SMALL,
            PoolKind::Large => {
                large.push(request);
                (large.len() - 1) as StorageId
            }
        };
        let mut seen = Self {
            numbers: recording
                .log
                .allocations
                .iter()
                .map(|allocation| number(allocation.bytes))
                .collect(),
            requests: large,
            streams: Vec::new(),
            build: Vec::new(),
            emptied: Vec::new(),
            first: Vec::new(),
            steady: Vec::new(),
        };
        let streams = recording.streams.iter();
        seen.streams = streams
            .filter_map(|&(id, stream)| Some((seen.number(id)?, stream)))
            .collect();
        let mut from = 0;
        for &at in &recording.emptied {
            seen.build.append(&mut seen.events(&recording.build[from..at]));
            seen.emptied.push(seen.build.len());
            from = at;
        }
        seen.build.append(&mut seen.events(&recording.build[from..]));
        seen.first = seen.events(&recording.first.events);
        seen.steady = seen.events(&recording.steady.events);
        seen
    }

    /// New number of a storage of the run, if it is large.
    pub fn number(&self, id: StorageId) -> Option<StorageId> {
        Some(self.numbers[id as usize]).filter(|&number| number != SMALL)
    }

    fn events(&self, events: &[Event]) -> Vec<Event> {
        let mut large = Vec::with_capacity(events.len() / 4);
        for event in events {
            if let Some(number) = self.number(event.storage()) {
                large.push(event.renamed(number));
            }
        }
        large
    }

    /// Makes a replay without live storages, whose segments get their addresses from `source`.
    pub fn replayer(&self, options: &Options, source: Box<dyn SegmentSource>) -> Replayer {
        let allocator = CachingAllocator::with_source(options.clone(), source);
        Replayer::new(self.requests.iter().copied(), &self.streams, allocator)
    }
}
