//! Replays recorded allocations and frees through the allocator, and finds the tensors live at the peak.

use crate::allocator::{Block, CachingAllocator, Options};
use crate::tape::log::{Event, Log, StorageId};

/// The highest instant of the last of several equal runs.
pub(super) struct Peak {
    /// Bytes above those that lived before the run.
    pub bytes: u64,
    /// Storages live then that were not live before the run, in order of allocation.
    pub live: Vec<StorageId>,
}

/// Replays a log whose events up to `warm` are the first run, and the rest a second run, which is replayed twice, as
/// benchmarks warm up. `None` if the device's address space cannot hold it.
pub(super) fn peak(log: &Log, warm: usize) -> Option<Peak> {
    let mut replayer = Replayer {
        log,
        allocator: CachingAllocator::new(Options::default()),
        blocks: vec![None; log.allocations.len()],
    };
    let (first, run) = log.events.split_at(warm);
    replayer.play(first)?;
    replayer.play(run)?;
    let before = replayer.allocator.allocated().get();
    let highest = replayer.play(run)?;
    Some(Peak {
        bytes: highest.0.saturating_sub(before),
        live: live_after(&run[..highest.1]),
    })
}

struct Replayer<'a> {
    log: &'a Log,
    allocator: CachingAllocator,
    blocks: Vec<Option<Block>>,
}

impl Replayer<'_> {
    /// Replays events, and returns the highest total and the number of events before it.
    fn play(&mut self, events: &[Event]) -> Option<(u64, usize)> {
        let mut highest = (self.allocator.allocated().get(), 0);
        for (i, event) in events.iter().enumerate() {
            let id = event.storage() as usize;
            if event.is_alloc() {
                let block = self.allocator.alloc(self.log.allocations[id].bytes, 0).ok()?;
                self.blocks[id] = Some(block);
                let now = self.allocator.allocated().get();
                if now > highest.0 {
                    highest = (now, i + 1);
                }
            } else if let Some(block) = self.blocks[id].take() {
                self.allocator.free(block);
            }
        }
        Some(highest)
    }
}

/// Storages allocated and not freed among these events.
fn live_after(events: &[Event]) -> Vec<StorageId> {
    // Allocations come in ascending order of id, so the remaining ones are sorted too.
    let mut live = Vec::new();
    for event in events {
        if event.is_alloc() {
            live.push(event.storage());
        } else if let Ok(at) = live.binary_search(&event.storage()) {
            live.remove(at);
        }
    }
    live
}
