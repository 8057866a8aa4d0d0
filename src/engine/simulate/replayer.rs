//! Replays recorded allocations and frees through the allocator.

use super::steps::Step;
use super::storages::Storages;
use crate::allocator::{Block, CachingAllocator, OutOfMemory, PoolKind};
use crate::report::{BlockBytes, StepBytes};
use crate::tape::Mark;
use crate::tape::log::{Event, StorageId};
use crate::units::Bytes;

const KINDS: [PoolKind; 2] = [PoolKind::Small, PoolKind::Large];

/// A replay: an allocator, and the block of each storage.
pub(crate) struct Replayer {
    storages: Storages,
    allocator: CachingAllocator,
    /// Stream of each storage; empty if all are on the first.
    streams: Vec<u32>,
    /// By storage, the old block that stays live while the storage is made anew; empty if that never happened.
    replaced: Vec<Option<Block>>,
    /// Number of replayed events of the current step; its highest total so far, with the number of events before it.
    played: usize,
    highest: (u64, usize),
    /// By kind of pool: true if the last step left it as it found it. From the same layout the same step repeats
    /// itself, so it need not be replayed.
    settled: [bool; 2],
    /// Number of frees of storages that were not live.
    strays: usize,
    /// The storage that found no memory, and the number of events of its step before it.
    missed: Option<(usize, StorageId)>,
}

/// Live storages between two steps, and the memory behind them.
///
/// Free neighbours are always merged, so live storages and segments determine the whole layout of a pool.
pub(crate) struct Lasting {
    /// Each live storage with its address.
    addresses: Vec<(StorageId, u64)>,
    allocated: Bytes,
    /// By kind of pool.
    reserved: [Bytes; 2],
    strays: usize,
}

impl Lasting {
    /// Ids of the live storages.
    pub fn storages(&self) -> Vec<StorageId> {
        self.addresses.iter().map(|&(id, _)| id).collect()
    }
}

impl Replayer {
    /// Makes a replay without live storages; `requests` are the storages' bytes, and `streams` the storages that are
    /// not on the first stream.
    pub fn new(
        requests: impl ExactSizeIterator<Item = u64>,
        streams: &[(StorageId, u32)],
        allocator: CachingAllocator,
    ) -> Self {
        let mut storages = Storages::default();
        storages.extend(requests);
        let mut by_storage = vec![0; if streams.is_empty() { 0 } else { storages.len() }];
        for &(id, stream) in streams {
            by_storage[id as usize] = stream;
        }
        Self {
            storages,
            allocator,
            streams: by_storage,
            replaced: Vec::new(),
            played: 0,
            highest: (0, 0),
            settled: [false; 2],
            strays: 0,
            missed: None,
        }
    }

    /// Adds storages on the first stream that request these bytes.
    pub fn know(&mut self, requests: impl ExactSizeIterator<Item = u64>) {
        self.storages.extend(requests);
    }

    /// Number of known storages.
    pub fn known(&self) -> usize {
        self.storages.len()
    }

    #[inline]
    fn stream(&self, id: usize) -> u32 {
        self.streams.get(id).copied().unwrap_or_default()
    }

    /// Allocator in its current state.
    pub fn allocator(&self) -> &CachingAllocator {
        &self.allocator
    }

    /// Returns the storage that found no memory, if any, and the number of events of its step before it.
    pub fn missed(&self) -> Option<(usize, StorageId)> {
        self.missed
    }

    /// Resets the allocator's peaks to the current values.
    pub fn reset_peaks(&mut self) {
        self.allocator.reset_peaks();
    }

    /// Releases segments without live blocks.
    pub fn empty_cache(&mut self) {
        self.allocator.empty_cache();
    }

    /// Begins a step.
    pub fn restart(&mut self) {
        (self.played, self.highest) = (0, (self.allocator.allocated().get(), 0));
    }

    /// Allocates these storages and frees them all, so that their memory stays cached.
    pub fn leave_behind(&mut self, ids: &[StorageId]) -> Result<(), OutOfMemory> {
        self.play(&ids.iter().map(|&id| Event::alloc(id)).collect::<Vec<_>>())?;
        self.play(&ids.iter().map(|&id| Event::free(id)).collect::<Vec<_>>())
    }

    /// Makes the live storages `from` live on as `to`, one by one.
    pub fn hand_over(&mut self, from: &[StorageId], to: &[StorageId]) {
        if from == to {
            return;
        }
        for (&from, &to) in from.iter().zip(to) {
            let block = self.storages.block_mut(from as usize).take();
            *self.storages.block_mut(to as usize) = block;
        }
    }

    /// Replays making the model, and what prepares it; the cache is emptied behind these numbers of events.
    pub fn build(&mut self, build: &[Event], emptied: &[usize]) -> Result<(), OutOfMemory> {
        let mut from = 0;
        for &at in emptied {
            self.play(&build[from..at])?;
            self.empty_cache();
            from = at;
        }
        self.play(&build[from..])?;
        self.allocator.reset_peaks();
        Ok(())
    }

    /// Replays one step and returns its figures.
    pub fn step(&mut self, step: &Step) -> Result<StepBytes, OutOfMemory> {
        self.restart();
        let mut out = StepBytes::default();
        self.rest_of_step(step, (None, 0), &mut out)?;
        Ok(out)
    }

    /// Replays the rest of a step of which `at` events, up to the mark `last` if any, have been replayed.
    pub fn rest_of_step(
        &mut self,
        step: &Step,
        (last, mut at): (Option<Mark>, usize),
        out: &mut StepBytes,
    ) -> Result<(), OutOfMemory> {
        for (mark, end) in step.instants() {
            if Some(mark) > last {
                self.play(&step.events[at..end])?;
                self.reach(mark, out);
                at = end;
            }
        }
        Ok(())
    }

    /// Notes the figures at a mark.
    pub fn reach(&mut self, mark: Mark, out: &mut StepBytes) {
        let (now, highest) = (self.allocator.allocated(), self.allocator.peak_allocated());
        match mark {
            Mark::Model => self.allocator.empty_cache(),
            Mark::BeforeForward => out.before_forward = now,
            Mark::AfterForward => (out.after_forward, out.peak_forward) = (now, highest),
            Mark::AfterBackward => (out.after_backward, out.peak_backward) = (now, highest),
            Mark::AfterOptimizer => out.peak_optimizer = highest,
            Mark::End => out.end = now,
        }
        self.allocator.reset_peaks();
    }

    /// Replays a step `times` times, or until everything is as it was one or two steps before and no segment was
    /// released since: the steps would repeat themselves from there on. A tensor that every step makes anew while the old
    /// one lives takes turns between two addresses. An error carries the number of repetitions before it.
    pub fn repeat(&mut self, events: &[Event], times: u64) -> Result<(), (u64, OutOfMemory)> {
        let mut one_ago: Option<(Lasting, u64)> = None;
        for number in 0..times {
            // Options that release segments by age or by size do so without a retry, so that nothing would show that the
            // steps differ.
            let may_end = number + 1 < times && self.allocator.gives_back_by_retries_only();
            let before = may_end.then(|| (self.lasting(), self.allocator.num_alloc_retries()));
            self.restart();
            self.play(events).map_err(|error| (number, error))?;
            let retries = self.allocator.num_alloc_retries();
            // Two states are compared, not one: a tensor that is made before its predecessor is freed cannot take its
            // place, so a step returns to the layout of the step before the last.
            let mut known = before.iter().chain(&one_ago);
            if known.any(|(lasting, then)| *then == retries && self.stayed(lasting) == [true; 2]) {
                break;
            }
            one_ago = before;
        }
        Ok(())
    }

    /// Snapshot of the live storages and the reserved memory.
    pub fn lasting(&self) -> Lasting {
        let live = self.storages.live();
        Lasting {
            addresses: live
                .map(|(id, block)| (id as StorageId, self.allocator.address(block)))
                .collect(),
            allocated: self.allocator.allocated(),
            reserved: self.reserved_by_kind(),
            strays: self.strays,
        }
    }

    /// Notes the pools that the last step left as they were before it; returns true if it did so with both.
    pub fn settle(&mut self, before: &Lasting) -> bool {
        self.settled = self.stayed(before);
        self.settled == [true; 2]
    }

    /// Returns by kind of pool if it is as it was; false if other storages are live.
    fn stayed(&self, before: &Lasting) -> [bool; 2] {
        // The cheap figures first. Equal bytes alone prove nothing: the same tensors at other addresses leave other
        // gaps, and the next step may need a segment more.
        if self.strays != before.strays || self.allocator.allocated() != before.allocated {
            return [false; 2];
        }
        let reserved = self.reserved_by_kind();
        let mut stayed = KINDS.map(|kind| reserved[kind as usize] == before.reserved[kind as usize]);
        for &(id, address) in &before.addresses {
            let Some(block) = self.storages.block(id as usize) else {
                return [false; 2];
            };
            if self.allocator.address(block) != address {
                stayed[self.storages.kind(id as usize) as usize] = false;
            }
        }
        stayed
    }

    fn reserved_by_kind(&self) -> [Bytes; 2] {
        KINDS.map(|kind| self.allocator.reserved_of(kind))
    }

    /// Number of events in the last step before its highest total.
    pub fn peak(&self) -> usize {
        self.highest.1
    }

    /// Bytes of each segment of one kind of pool.
    pub fn segments(&self, kind: PoolKind) -> impl Iterator<Item = Bytes> {
        self.allocator.segment_sizes(kind)
    }

    /// Bytes of the last block of each storage.
    pub fn block_bytes(&self) -> BlockBytes {
        (0..self.known()).map(|id| self.bytes(id)).collect()
    }

    /// Bytes of a storage's last block.
    #[inline]
    fn bytes(&self, id: usize) -> u64 {
        self.storages.block_bytes(id, |request| self.allocator.round(request))
    }

    /// Replays some events.
    pub fn play(&mut self, events: &[Event]) -> Result<(), OutOfMemory> {
        // A pool that the last step left as it found it is not searched again: each storage gets the block that it had,
        // and the figures need no more than its bytes.
        let may_count = self.settled != [false; 2];
        let mut at = 0;
        while let Some(&event) = events.get(at) {
            let id = event.storage() as usize;
            at += 1;
            if may_count && self.is_settled(id) {
                self.count(event, id, at);
            } else if !event.is_alloc() {
                self.free(id);
            } else if events.get(at) == Some(&Event::free(event.storage())) && self.storages.block(id).is_none() {
                let total = self.scratch(id).inspect_err(|_| self.note_missed(id, at))?;
                self.note_total(total, at);
                at += 1;
            } else {
                let total = self.alloc(id).inspect_err(|_| self.note_missed(id, at))?;
                self.note_total(total, at);
            }
        }
        self.played += events.len();
        Ok(())
    }

    /// Returns true if a storage's pool repeats the step before.
    #[inline]
    fn is_settled(&self, id: usize) -> bool {
        self.settled[self.storages.kind(id) as usize]
    }

    /// Counts an event whose block is known from the step before.
    fn count(&mut self, event: Event, id: usize, at: usize) {
        let bytes = self.bytes(id);
        if event.is_alloc() {
            self.allocator.count_allocated(bytes);
            self.note_total(self.allocator.allocated().get(), at);
        } else {
            self.allocator.count_freed(bytes);
        }
    }

    /// Notes the storage of the `at`-th event, which found no memory.
    #[cold]
    fn note_missed(&mut self, id: usize, at: usize) {
        self.missed = Some((self.played + at - 1, id as StorageId));
    }

    /// Notes the total after the first `at` of the events being replayed.
    fn note_total(&mut self, total: u64, at: usize) {
        if total > self.highest.0 {
            self.highest = (total, self.played + at);
        }
    }

    /// Allocates a storage and returns the allocated bytes after it.
    fn alloc(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        let block = self.allocator.alloc(self.storages.request(id), self.stream(id))?;
        self.storages.note_block_bytes(id, || self.allocator.block_size(block));
        // Every step repeats the ids of the first. What a module keeps until it has made the next, such as a mask, is
        // allocated before the old one is freed: both have this id, and the next free is the old one's.
        if let Some(old) = self.storages.block_mut(id).replace(block) {
            if id >= self.replaced.len() {
                self.replaced.resize(self.known(), None);
            }
            self.replaced[id] = Some(old);
        }
        Ok(self.allocator.allocated().get())
    }

    /// Allocates a storage that is freed at once, and returns the allocated bytes including its block.
    fn scratch(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        let request = self.storages.request(id);
        let bytes = self.allocator.alloc_and_free(request, self.stream(id))?;
        self.storages.note_block_bytes(id, || bytes);
        Ok(self.allocator.allocated().get() + bytes)
    }

    #[inline]
    fn free(&mut self, id: usize) {
        let replaced = self.replaced.get_mut(id).and_then(Option::take);
        if let Some(block) = replaced.or_else(|| self.storages.block_mut(id).take()) {
            self.allocator.free(block);
        } else {
            // Counted rather than ignored: a step that frees what is not live has not returned to where it began.
            self.strays += 1;
        }
    }
}
