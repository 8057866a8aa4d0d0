//! Plays recorded births and deaths to the allocator.

use std::collections::{BTreeMap, HashMap};

use super::steps::Step;
use crate::allocator::{Block, CachingAllocator, Options, OutOfMemory, PoolKind};
use crate::report::StepBytes;
use crate::tape::log::{Birth, Event, StorageId};
use crate::units::Bytes;

/// An allocator, and where it put each storage.
pub(super) struct Player<'a> {
    births: &'a [Birth],
    allocator: CachingAllocator,
    /// Whether the pools compete for what the process may reserve.
    is_limited: bool,
    blocks: Vec<Option<Block>>,
    /// Blocks of storages that were made anew before the old one died.
    replaced: HashMap<usize, Block>,
    block_bytes: Vec<u64>,
    peak_reserved: u64,
    /// Events of the step that is played, the highest total so far, and how many came before it.
    played: usize,
    highest: (u64, usize),
    /// By kind of pool: whether the last step left it as it found it. From the same layout the same
    /// step goes the same way, so it need not be played again.
    settled: [bool; 2],
    /// Deaths of storages that did not live.
    strays: usize,
}

const KINDS: [PoolKind; 2] = [PoolKind::Small, PoolKind::Large];

/// Where everything lies in the pools of one kind.
#[derive(PartialEq)]
pub(super) struct Layout {
    fingerprint: u64,
    /// Of each storage that lives.
    addresses: Vec<(usize, u64)>,
    strays: usize,
}

impl<'a> Player<'a> {
    /// Nothing is allocated yet; `births` says what each storage is.
    pub fn new(births: &'a [Birth], options: Options) -> Self {
        let n = births.len();
        Self {
            births,
            is_limited: options.limit.is_some() || options.capacity.is_some(),
            allocator: CachingAllocator::new(options),
            blocks: vec![None; n],
            replaced: HashMap::new(),
            block_bytes: vec![0; n],
            peak_reserved: 0,
            played: 0,
            highest: (0, 0),
            settled: [false; 2],
            strays: 0,
        }
    }

    /// Plays what makes the model, then `torch.cuda.empty_cache()`; the allocated bytes.
    pub fn build(&mut self, events: &[Event]) -> Result<u64, OutOfMemory> {
        self.play(events)?;
        self.allocator.empty_cache();
        self.allocator.reset_peaks();
        self.peak_reserved = 0;
        Ok(self.allocator.allocated().get())
    }

    /// Plays one step: its figures.
    pub fn step(&mut self, step: &Step) -> Result<StepBytes, OutOfMemory> {
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

    /// Storages that live.
    pub fn live(&self) -> Vec<StorageId> {
        (0..self.blocks.len() as StorageId)
            .filter(|&id| self.blocks[id as usize].is_some())
            .collect()
    }

    /// Highest reserved bytes since the model was made.
    pub fn peak_reserved(&self) -> u64 {
        self.peak_reserved.max(self.allocator.peak_reserved().get())
    }

    /// How many events of the last step come before its highest total.
    pub fn peak(&self) -> usize {
        self.highest.1
    }

    /// Segments by size, largest first, with their number.
    pub fn segments(&self) -> Vec<(Bytes, u64)> {
        let mut counts = BTreeMap::new();
        for segment in self.allocator.segments() {
            *counts.entry(Bytes::new(segment.size)).or_insert(0) += 1;
        }
        counts.into_iter().rev().collect()
    }

    /// Bytes of each storage's last block.
    pub fn into_block_bytes(self) -> Vec<u64> {
        self.block_bytes
    }

    /// Where everything lies, by kind of pool.
    pub fn layouts(&self) -> [Layout; 2] {
        KINDS.map(|kind| self.layout(kind))
    }

    /// Notes which pools the last step left as they were before it; whether all of them.
    pub fn settle(&mut self, before: &[Layout; 2]) -> bool {
        let settled = KINDS.map(|kind| self.layout(kind) == before[kind as usize]);
        let all = settled == [true; 2];
        if all || !self.is_limited {
            self.settled = settled;
        }
        all
    }

    fn layout(&self, kind: PoolKind) -> Layout {
        let live = self
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(id, block)| Some((id, (*block)?)));
        Layout {
            fingerprint: self.allocator.fingerprint_of(kind),
            addresses: live
                .filter(|(_, block)| PoolKind::of(self.allocator.block_size(*block)) == kind)
                .map(|(id, block)| (id, self.allocator.address(block)))
                .collect(),
            strays: self.strays,
        }
    }

    /// `reset_peak_memory_stats`, the run's own highest reservation kept.
    fn reset(&mut self) {
        self.peak_reserved = self.peak_reserved();
        self.allocator.reset_peaks();
    }

    fn play(&mut self, events: &[Event]) -> Result<(), OutOfMemory> {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            let id = event.storage() as usize;
            at += 1;
            if self.is_settled(id) {
                self.count(*event, id, at);
                continue;
            }
            if !event.is_birth() {
                self.free(id);
                continue;
            }
            let dies_next = events.get(at) == Some(&Event::death(event.storage()));
            let is_scratch = dies_next && self.blocks[id].is_none();
            let total = if is_scratch { self.scratch(id)? } else { self.alloc(id)? };
            self.note_total(total, at);
            at += usize::from(is_scratch);
        }
        self.played += events.len();
        Ok(())
    }

    /// Whether a storage's pool repeats what it did in the step before.
    fn is_settled(&self, id: usize) -> bool {
        self.settled != [false; 2] && self.settled[PoolKind::of(self.block_bytes[id]) as usize]
    }

    /// Plays an event whose block is known from the step before.
    fn count(&mut self, event: Event, id: usize, at: usize) {
        let bytes = self.block_bytes[id];
        if event.is_birth() {
            self.allocator.count_allocated(bytes);
            self.note_total(self.allocator.allocated().get(), at);
        } else {
            self.allocator.count_freed(bytes);
        }
    }

    /// Notes the total after the first `at` of the events that are played.
    fn note_total(&mut self, total: u64, at: usize) {
        if total > self.highest.0 {
            self.highest = (total, self.played + at);
        }
    }

    /// Allocated bytes with the block of a storage that is born.
    fn alloc(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        let block = self.allocator.alloc(self.births[id].bytes, 0)?;
        self.block_bytes[id] = self.allocator.block_size(block);
        if let Some(old) = self.blocks[id].replace(block) {
            self.replaced.insert(id, old);
        }
        Ok(self.allocator.allocated().get())
    }

    /// Allocated bytes with the block of a storage that dies as soon as it is born.
    fn scratch(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        self.block_bytes[id] = self.allocator.alloc_and_free(self.births[id].bytes, 0)?;
        Ok(self.allocator.allocated().get() + self.block_bytes[id])
    }

    fn free(&mut self, id: usize) {
        if let Some(block) = self.dying(id) {
            self.allocator.free(block);
        } else {
            self.strays += 1;
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
}
