//! Plays recorded births and deaths to the allocator.

use super::steps::Step;
use super::storages::Storages;
use crate::allocator::{Block, CachingAllocator, OutOfMemory, PoolKind};
use crate::report::{BlockBytes, StepBytes};
use crate::tape::Mark;
use crate::tape::log::{Event, StorageId};
use crate::units::Bytes;

const KINDS: [PoolKind; 2] = [PoolKind::Small, PoolKind::Large];

/// An allocator, and where it puts each storage.
pub(crate) struct Player {
    storages: Storages,
    allocator: CachingAllocator,
    /// The stream that each storage is made on; of none where all are made on the first.
    streams: Vec<u32>,
    /// By storage, the block of an old one that lives on while it is made anew; of none where none ever was.
    replaced: Vec<Option<Block>>,
    /// Events of the step that is played, the highest total so far, and how many came before it.
    played: usize,
    highest: (u64, usize),
    /// By kind of pool: whether the last step left it as it found it. From the same layout the same
    /// step goes the same way, so it need not be played again.
    settled: [bool; 2],
    /// Deaths of storages that did not live.
    strays: usize,
    /// The storage that found no room, and how many events of its step came before.
    missed: Option<(usize, StorageId)>,
}

/// What lives between two steps, and the memory behind it.
///
/// Neighbours that are free are always merged, so what lives and the segments decide the layout of a
/// pool whole.
pub(crate) struct Lasting {
    /// Each storage that lives, and where.
    addresses: Vec<(StorageId, u64)>,
    allocated: Bytes,
    /// By kind of pool.
    reserved: [Bytes; 2],
    strays: usize,
}

impl Lasting {
    /// Storages that live.
    pub fn storages(&self) -> Vec<StorageId> {
        self.addresses.iter().map(|&(id, _)| id).collect()
    }
}

impl Player {
    /// Nothing lives yet of the storages, which ask for so many bytes, on the first stream but for those of
    /// `streams`.
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

    /// Further storages, on the first stream, ask for so many bytes.
    pub fn know(&mut self, requests: impl ExactSizeIterator<Item = u64>) {
        self.storages.extend(requests);
    }

    /// Number of storages that it knows.
    pub fn known(&self) -> usize {
        self.storages.len()
    }

    #[inline]
    fn stream(&self, id: usize) -> u32 {
        self.streams.get(id).copied().unwrap_or_default()
    }

    /// The allocator as it is now.
    pub fn allocator(&self) -> &CachingAllocator {
        &self.allocator
    }

    /// Which storage found no room, if any, and how many events of its step came before.
    pub fn missed(&self) -> Option<(usize, StorageId)> {
        self.missed
    }

    /// Sets the allocator's peaks to what is held now.
    pub fn reset_peaks(&mut self) {
        self.allocator.reset_peaks();
    }

    /// Gives segments back that hold nothing.
    pub fn empty_cache(&mut self) {
        self.allocator.empty_cache();
    }

    /// Begins a step.
    pub fn restart(&mut self) {
        (self.played, self.highest) = (0, (self.allocator.allocated().get(), 0));
    }

    /// Makes these storages and drops them all: what they lay in stays cached.
    pub fn leave_behind(&mut self, ids: &[StorageId]) -> Result<(), OutOfMemory> {
        self.play(&ids.iter().map(|&id| Event::birth(id)).collect::<Vec<_>>())?;
        self.play(&ids.iter().map(|&id| Event::death(id)).collect::<Vec<_>>())
    }

    /// Plays what makes the model, then `torch.cuda.empty_cache()`.
    pub fn build(&mut self, events: &[Event]) -> Result<(), OutOfMemory> {
        self.play(events)?;
        self.reach(Mark::Model, &mut StepBytes::default());
        Ok(())
    }

    /// Plays one step: its figures.
    pub fn step(&mut self, step: &Step) -> Result<StepBytes, OutOfMemory> {
        self.restart();
        let mut out = StepBytes::default();
        self.rest_of_step(step, (None, 0), &mut out)?;
        Ok(out)
    }

    /// Plays the rest of a step of which so many events were played, and this instant was the last if any.
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

    /// Reads the figures of an instant.
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

    /// Plays a step so many times, or until it leaves everything as it found it and no segment was given back: from
    /// there on it goes the same way. An error tells how many went before.
    pub fn repeat(&mut self, events: &[Event], times: u64) -> Result<(), (u64, OutOfMemory)> {
        for number in 0..times {
            // Options that give segments back by age or by size do so without a retry.
            let may_end = number + 1 < times && self.allocator.gives_back_by_retries_only();
            let before = may_end.then(|| (self.lasting(), self.allocator.num_alloc_retries()));
            self.restart();
            self.play(events).map_err(|error| (number, error))?;
            if let Some((lasting, retries)) = before
                && self.settle(&lasting)
                && retries == self.allocator.num_alloc_retries()
            {
                break;
            }
            // What one pool gives back may be the other's, so neither is counted only.
            self.settled = [false; 2];
        }
        Ok(())
    }

    /// What lives now.
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

    /// Notes which pools the last step left as they were before it; whether all of them.
    pub fn settle(&mut self, before: &Lasting) -> bool {
        let stayed = |&(id, address): &(StorageId, u64)| {
            self.storages
                .block(id as usize)
                .is_some_and(|block| self.allocator.address(block) == address)
        };
        if self.strays == before.strays
            && self.allocator.allocated() == before.allocated
            && before.addresses.iter().all(stayed)
        {
            let reserved = self.reserved_by_kind();
            self.settled = KINDS.map(|kind| reserved[kind as usize] == before.reserved[kind as usize]);
        }
        self.settled == [true; 2]
    }

    fn reserved_by_kind(&self) -> [Bytes; 2] {
        KINDS.map(|kind| self.allocator.reserved_of(kind))
    }

    /// How many events of the last step come before its highest total.
    pub fn peak(&self) -> usize {
        self.highest.1
    }

    /// Bytes of each segment of one kind of pool.
    pub fn segments(&self, kind: PoolKind) -> impl Iterator<Item = Bytes> {
        self.allocator.segment_sizes(kind)
    }

    /// Bytes of each storage's last block.
    pub fn block_bytes(&self) -> BlockBytes {
        (0..self.known()).map(|id| self.bytes(id)).collect()
    }

    /// Bytes of a storage's last block.
    #[inline]
    fn bytes(&self, id: usize) -> u64 {
        self.storages.block_bytes(id, |request| self.allocator.round(request))
    }

    /// Plays some events.
    pub fn play(&mut self, events: &[Event]) -> Result<(), OutOfMemory> {
        let may_count = self.settled != [false; 2];
        let mut at = 0;
        while let Some(&event) = events.get(at) {
            let id = event.storage() as usize;
            at += 1;
            if may_count && self.is_settled(id) {
                self.count(event, id, at);
            } else if !event.is_birth() {
                self.free(id);
            } else if events.get(at) == Some(&Event::death(event.storage())) && self.storages.block(id).is_none() {
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

    /// Whether a storage's pool repeats what it did in the step before.
    #[inline]
    fn is_settled(&self, id: usize) -> bool {
        self.settled[self.storages.kind(id) as usize]
    }

    /// Plays an event whose block is known from the step before.
    fn count(&mut self, event: Event, id: usize, at: usize) {
        let bytes = self.bytes(id);
        if event.is_birth() {
            self.allocator.count_allocated(bytes);
            self.note_total(self.allocator.allocated().get(), at);
        } else {
            self.allocator.count_freed(bytes);
        }
    }

    /// Notes the storage of the last of the first `at` events, which found no room.
    #[cold]
    fn note_missed(&mut self, id: usize, at: usize) {
        self.missed = Some((self.played + at - 1, id as StorageId));
    }

    /// Notes the total after the first `at` of the events that are played.
    fn note_total(&mut self, total: u64, at: usize) {
        if total > self.highest.0 {
            self.highest = (total, self.played + at);
        }
    }

    /// Allocated bytes with the block of a storage that is born.
    fn alloc(&mut self, id: usize) -> Result<u64, OutOfMemory> {
        let block = self.allocator.alloc(self.storages.request(id), self.stream(id))?;
        self.storages.note_block_bytes(id, || self.allocator.block_size(block));
        if let Some(old) = self.storages.block_mut(id).replace(block) {
            if id >= self.replaced.len() {
                self.replaced.resize(self.known(), None);
            }
            self.replaced[id] = Some(old);
        }
        Ok(self.allocator.allocated().get())
    }

    /// Allocated bytes with the block of a storage that dies as soon as it is born.
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
            self.strays += 1;
        }
    }
}
