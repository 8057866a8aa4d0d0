//! What the large pool sees of a recorded run.

use super::player::Player;
use super::steps::Recording;
use crate::allocator::{CachingAllocator, Options, PoolKind, SegmentSource};
use crate::tape::log::{Event, StorageId};

/// The large storages of a run, numbered anew, and their births and deaths. Rounding takes no request across the
/// border between the pools.
///
/// The small pool takes segments of one size, 2 MiB, so that their order decides little: where only the order of
/// segments differs, it need not be played again.
pub(super) struct LargePool {
    /// Bytes that each large storage asks for.
    requests: Vec<u64>,
    /// Large storages that are not made on the first stream, and theirs.
    streams: Vec<(StorageId, u32)>,
    /// The number of each storage of the run, or [`SMALL`].
    numbers: Vec<StorageId>,
    /// Making the model.
    pub build: Vec<Event>,
    /// The first step.
    pub first: Vec<Event>,
    /// Every later one.
    pub steady: Vec<Event>,
}

/// The number of a storage of the small pool.
const SMALL: StorageId = StorageId::MAX;

impl LargePool {
    /// Of a recorded run.
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
            numbers: recording.log.births.iter().map(|birth| number(birth.bytes)).collect(),
            requests: large,
            streams: Vec::new(),
            build: Vec::new(),
            first: Vec::new(),
            steady: Vec::new(),
        };
        let streams = recording.streams.iter();
        seen.streams = streams
            .filter_map(|&(id, stream)| Some((seen.number(id)?, stream)))
            .collect();
        seen.build = seen.events(&recording.build);
        seen.first = seen.events(&recording.first.events);
        seen.steady = seen.events(&recording.steady.events);
        seen
    }

    /// The number of a storage of the run, if it is large.
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

    /// Nothing lives yet, and segments lie where `source` says.
    pub fn player(&self, options: &Options, source: Box<dyn SegmentSource>) -> Player {
        let allocator = CachingAllocator::with_source(options.clone(), source);
        Player::new(self.requests.iter().copied(), &self.streams, allocator)
    }
}
