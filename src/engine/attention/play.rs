//! Plays recorded births and deaths to the allocator, and finds what lives at the highest instant.

use crate::allocator::{Block, CachingAllocator, Options};
use crate::tape::log::{Event, Log, StorageId};

/// The highest instant of the last of several equal runs.
pub(super) struct Peak {
    /// Bytes above those that lived before the run.
    pub bytes: u64,
    /// What lives then and did not before, in order of birth.
    pub live: Vec<StorageId>,
}

/// Plays a log whose events up to `warm` end with the first run; the rest is a run that is played
/// twice, as benchmarks warm up. `None` where the device's address space would not hold it.
pub(super) fn peak(log: &Log, warm: usize) -> Option<Peak> {
    let mut player = Player {
        log,
        allocator: CachingAllocator::new(Options::default()),
        blocks: vec![None; log.births.len()],
    };
    let (first, run) = log.events.split_at(warm);
    player.play(first)?;
    player.play(run)?;
    let before = player.allocator.allocated().get();
    let highest = player.play(run)?;
    Some(Peak {
        bytes: highest.0.saturating_sub(before),
        live: live_after(&run[..highest.1]),
    })
}

struct Player<'a> {
    log: &'a Log,
    allocator: CachingAllocator,
    blocks: Vec<Option<Block>>,
}

impl Player<'_> {
    /// The highest total and how many events came before it.
    fn play(&mut self, events: &[Event]) -> Option<(u64, usize)> {
        let mut highest = (self.allocator.allocated().get(), 0);
        for (i, event) in events.iter().enumerate() {
            let id = event.storage() as usize;
            if event.is_birth() {
                let block = self.allocator.alloc(self.log.births[id].bytes, 0).ok()?;
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

/// What is born and does not die among these events.
fn live_after(events: &[Event]) -> Vec<StorageId> {
    // Births come in order, so what is left of them is in order too.
    let mut live = Vec::new();
    for event in events {
        if event.is_birth() {
            live.push(event.storage());
        } else if let Ok(at) = live.binary_search(&event.storage()) {
            live.remove(at);
        }
    }
    live
}
