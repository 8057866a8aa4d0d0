//! Drives the allocator with a recorded run.

use std::collections::HashMap;

use super::steps::{Recording, Step};
use crate::allocator::{Block, CachingAllocator, Options, OutOfMemory};
use crate::report::StepBytes;
use crate::tape::log::{Event, StorageId};

/// The allocator's figures over a run of three steps.
pub struct Replay {
    /// Allocated bytes once the model is made.
    pub after_model: u64,
    /// Figures of each step.
    pub steps: [StepBytes; 3],
    /// Highest reserved bytes of the run.
    pub peak_reserved: u64,
    /// Bytes of each storage's block, by storage.
    pub block_bytes: Vec<u64>,
    /// Storages that live before the steady step.
    pub initial: Vec<StorageId>,
    /// How many events of the steady step come before its highest total.
    pub peak: usize,
}

struct Player<'a> {
    recording: &'a Recording,
    allocator: CachingAllocator,
    blocks: Vec<Option<Block>>,
    /// Blocks of storages that were made anew before the old one died.
    replaced: HashMap<usize, Block>,
    block_bytes: Vec<u64>,
    peak_reserved: u64,
    /// Events of the step that is played, the highest total so far, and how many came before it.
    played: usize,
    highest: (u64, usize),
}

/// Replays making the model, then the first step, the second, and the second again.
///
/// # Errors
/// When the allocator's limit does not hold the run.
pub fn replay(recording: &Recording, options: Options) -> Result<Replay, OutOfMemory> {
    let n = recording.log.births.len();
    let mut player = Player {
        recording,
        allocator: CachingAllocator::new(options),
        blocks: vec![None; n],
        replaced: HashMap::new(),
        block_bytes: vec![0; n],
        peak_reserved: 0,
        played: 0,
        highest: (0, 0),
    };
    player.play(&recording.build)?;
    player.allocator.empty_cache();
    player.reset();
    player.peak_reserved = 0;
    let after_model = player.allocator.allocated().get();
    let first = player.step(&recording.first)?;
    let initial = player.live();
    let before = player.allocator.fingerprint();
    let second = player.step(&recording.steady)?;
    // From the same layout the same step leads to the same figures.
    let third = if player.allocator.fingerprint() == before {
        second
    } else {
        player.step(&recording.steady)?
    };
    let steps = [first, second, third];
    Ok(Replay {
        after_model,
        steps,
        peak_reserved: player.peak_reserved.max(player.allocator.peak_reserved().get()),
        peak: player.highest.1,
        block_bytes: player.block_bytes,
        initial,
    })
}

impl Player<'_> {
    /// `reset_peak_memory_stats`, the run's own highest reservation kept.
    fn reset(&mut self) {
        self.peak_reserved = self.peak_reserved.max(self.allocator.peak_reserved().get());
        self.allocator.reset_peaks();
    }

    fn play(&mut self, events: &[Event]) -> Result<(), OutOfMemory> {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            let id = event.storage() as usize;
            at += 1;
            if !event.is_birth() {
                self.free(id);
                continue;
            }
            let dies_next = events.get(at) == Some(&Event::death(event.storage()));
            let is_scratch = dies_next && self.blocks[id].is_none();
            let total = if is_scratch { self.scratch(id)? } else { self.alloc(id)? };
            if total > self.highest.0 {
                self.highest = (total, self.played + at);
            }
            at += usize::from(is_scratch);
        }
        self.played += events.len();
        Ok(())
    }

    fn live(&self) -> Vec<StorageId> {
        (0..self.blocks.len() as StorageId)
            .filter(|&id| self.blocks[id as usize].is_some())
            .collect()
    }

    /// Allocated bytes with the block of a storage that is born.
    fn alloc(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        let block = self.allocator.alloc(self.recording.log.births[id].bytes, 0)?;
        self.block_bytes[id] = self.allocator.block_size(block);
        if let Some(old) = self.blocks[id].replace(block) {
            self.replaced.insert(id, old);
        }
        Ok(self.allocator.allocated().get())
    }

    /// Allocated bytes with the block of a storage that dies as soon as it is born.
    fn scratch(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        self.block_bytes[id] = self.allocator.alloc_and_free(self.recording.log.births[id].bytes, 0)?;
        Ok(self.allocator.allocated().get() + self.block_bytes[id])
    }

    fn free(&mut self, id: usize) {
        if let Some(block) = self.dying(id) {
            self.allocator.free(block);
        }
    }

    fn dying(&mut self, id: usize) -> Option<Block> {
        let replaced = if self.replaced.is_empty() {
            None
        } else {
            self.replaced.remove(&id)
        };
        replaced.or_else(|| self.blocks[id].take())
    }

    fn step(&mut self, step: &Step) -> Result<StepBytes, OutOfMemory> {
        let mut out = StepBytes::default();
        let (marks, events) = (&step.marks, &step.events);
        (self.played, self.highest) = (0, (self.allocator.allocated().get(), 0));
        self.play(&events[..marks.before_forward])?;
        out.before_forward = self.allocator.allocated();
        self.reset();
        self.play(&events[marks.before_forward..marks.after_forward])?;
        out.after_forward = self.allocator.allocated();
        out.peak_forward = self.allocator.peak_allocated();
        self.reset();
        self.play(&events[marks.after_forward..marks.after_backward])?;
        out.after_backward = self.allocator.allocated();
        out.peak_backward = self.allocator.peak_allocated();
        self.reset();
        self.play(&events[marks.after_backward..marks.after_optimizer])?;
        out.peak_optimizer = self.allocator.peak_allocated();
        self.play(&events[marks.after_optimizer..])?;
        out.end = self.allocator.allocated();
        Ok(out)
    }
}
