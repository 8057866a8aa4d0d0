//! The caching allocator's state and its public operations.

use std::num::NonZeroU32;

use super::arena::{Arena, BlockState};
use super::driver_addresses::DriverAddresses;
use super::error::OutOfMemory;
use super::expandable::Range;
use super::free_blocks::FreeBlocks;
use super::options::Options;
use super::segment_source::SegmentSource;
use super::size::{PoolKind, SMALL_SIZE, round_size};
use super::small_pools::SmallPools;
use crate::units::Bytes;

/// A live allocation. Ids are reused once freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(NonZeroU32);

/// Storage that holds a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    /// In [`SmallPools`], by its id.
    Small(u32),
    /// In the [`Arena`], by its id.
    General(u32),
}

impl Block {
    /// Ids of small pools have this bit.
    const SMALL: u32 = 1 << 31;

    #[inline(always)]
    pub(super) fn of(found: Found) -> Self {
        let id = match found {
            Found::Small(id) => id | Self::SMALL,
            Found::General(id) => id,
        };
        // No id is the largest number: that is the end of a chain.
        Self(NonZeroU32::MIN.saturating_add(id))
    }

    #[inline(always)]
    pub(super) fn found(self) -> Found {
        let id = self.0.get() - 1;
        if id & Self::SMALL == 0 {
            Found::General(id)
        } else {
            Found::Small(id & !Self::SMALL)
        }
    }
}

/// The caching allocator of one device (`DeviceCachingAllocator`).
#[derive(Debug)]
pub struct CachingAllocator<S = Box<dyn SegmentSource>> {
    pub(super) options: Options,
    /// True if no option changes the search of the cache.
    pub(super) plain_search: bool,
    /// True if small requests are served from `small` instead of from `blocks`.
    pub(super) has_small_pools: bool,
    pub(super) source: S,
    pub(super) small: SmallPools,
    pub(super) blocks: Arena,
    /// Two for each stream: small, then large.
    pub(super) pools: Vec<FreeBlocks>,
    /// Unmapped blocks of each pool by address (`BlockPool::unmapped`).
    pub(super) unmapped: Vec<Vec<u32>>,
    /// All expandable segments ever made.
    pub(super) ranges: Vec<Range>,
    pub(super) streams: Vec<u32>,
    pub(super) reserved: u64,
    /// The part of `reserved` that belongs to the small pools.
    pub(super) reserved_small: u64,
    pub(super) peak_reserved: u64,
    pub(super) allocated: u64,
    pub(super) peak_allocated: u64,
    pub(super) num_alloc_retries: u64,
    /// Searches of the small and of the large pools (`get_free_blocks_call_count`).
    pub(super) searches: [u32; 2],
}

/// A request that is looked for (`AllocParams`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Rounded bytes.
    pub size: u64,
    pub pool: u32,
    pub kind: PoolKind,
}

impl CachingAllocator {
    /// Makes an empty allocator whose segments have the addresses that `cudaMalloc` would return.
    pub fn new(options: Options) -> Self {
        Self::with_source(options, Box::new(DriverAddresses::default()))
    }
}

impl<S: SegmentSource> CachingAllocator<S> {
    /// Makes an empty allocator whose segments get their addresses from `source`.
    pub fn with_source(options: Options, source: S) -> Self {
        let plain_search = !options.expandable_segments && options.max_split_size.is_none();
        Self {
            plain_search,
            has_small_pools: plain_search && options.garbage_collection_threshold <= 0.0,
            options,
            source,
            small: SmallPools::default(),
            blocks: Arena::default(),
            pools: Vec::new(),
            unmapped: Vec::new(),
            ranges: Vec::new(),
            streams: Vec::new(),
            reserved: 0,
            reserved_small: 0,
            peak_reserved: 0,
            allocated: 0,
            peak_allocated: 0,
            num_alloc_retries: 0,
            searches: [0; 2],
        }
    }

    /// Allocates `bytes` for use on `stream` (`malloc`).
    ///
    /// A tensor without elements never gets here in PyTorch; 0 bytes give the smallest block.
    ///
    /// # Errors
    /// When no cached block serves the request and, after all cached segments are released, nothing more may be
    /// reserved.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn alloc(&mut self, bytes: u64, stream: u32) -> Result<Block, OutOfMemory> {
        let size = self.round(bytes);
        let stream = self.stream_index(stream);
        let kind = PoolKind::of(size);
        let request = Request {
            size,
            kind,
            pool: (2 * stream + kind as usize) as u32,
        };
        if !self.is_of_small_pools(size) {
            return self.alloc_general(request);
        }
        let id = match self.small.take(stream, size) {
            Some(id) => id,
            None => self.take_new(request)?,
        };
        self.count_allocated(size);
        Ok(Block::of(Found::Small(id)))
    }

    /// Rounds a request of `bytes` to the bytes of its block.
    #[inline]
    pub fn round(&self, bytes: u64) -> u64 {
        round_size(bytes.min(Self::LARGEST_REQUEST), &self.options)
    }

    /// Returns true if a request of these rounded bytes is served from `small`.
    #[inline(always)]
    pub(super) fn is_of_small_pools(&self, size: u64) -> bool {
        size <= SMALL_SIZE && self.has_small_pools
    }

    #[inline(never)]
    fn alloc_general(&mut self, request: Request) -> Result<Block, OutOfMemory> {
        let found = match self.take_cached(request) {
            Some(id) => id,
            None => self.take_new(request)?,
        };
        Ok(self.hand_out(found, request.size))
    }

    /// Allocates `bytes` and frees them at once, as libraries do with scratch memory, and returns the bytes of the
    /// block. If no option changes the search of the cache and a cached block serves the request, this only looks the
    /// block up: a block that is split and freed is whole again.
    ///
    /// # Errors
    /// Returns the errors of [`Self::alloc`].
    #[inline]
    pub fn alloc_and_free(&mut self, bytes: u64, stream: u32) -> Result<u64, OutOfMemory> {
        let size = self.round(bytes);
        let index = self.stream_index(stream);
        // Attention and convolutions of a large model ask for thousands of workspaces a step. The peak counts the block
        // while it lives; nothing else is left of it.
        if let Some(block) = self.size_of_scratch(size, index) {
            self.peak_allocated = self.peak_allocated.max(self.allocated + block);
            return Ok(block);
        }
        let block = self.alloc(bytes, stream)?;
        let size = self.block_size(block);
        self.free(block);
        Ok(size)
    }

    /// Returns the bytes of the cached block that a request of these rounded bytes would get, if looking it up is
    /// enough.
    #[inline]
    fn size_of_scratch(&mut self, size: u64, stream: usize) -> Option<u64> {
        if !self.has_small_pools {
            return None;
        }
        if self.is_of_small_pools(size) {
            return self.small.has(stream, size).then_some(size);
        }
        let id = self.pools[2 * stream + PoolKind::Large as usize].best_fit(&self.blocks, size)?;
        Some(self.size_handed_out(id, size))
    }

    /// Counts a block of `bytes` as allocated from a pool whose layout the caller knows to repeat, so that no search is
    /// needed.
    #[inline]
    pub fn count_allocated(&mut self, bytes: u64) {
        self.allocated += bytes;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
    }

    /// Counts a block of [`Self::count_allocated`] as freed.
    #[inline]
    pub fn count_freed(&mut self, bytes: u64) {
        self.allocated -= bytes;
    }

    /// `one_exa_bytes` of `NativeCachingAllocator::allocate`: no request above can succeed.
    const LARGEST_REQUEST: u64 = 1 << 60;

    /// Frees a block that only its own stream has used (`free`).
    ///
    /// # Panics
    /// When `block` is not live: freed before, or of another allocator.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn free(&mut self, block: Block) {
        match block.found() {
            Found::Small(id) => self.allocated -= self.small.free(id),
            Found::General(id) => self.free_general(id),
        }
    }

    #[inline(never)]
    fn free_general(&mut self, id: u32) {
        let node = &self.blocks[id];
        assert!(node.state == BlockState::Allocated, "the block is not live");
        self.allocated -= node.size;
        self.free_block(id);
    }

    /// Merges a block with its free neighbours and caches it (`free_block`).
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn free_block(&mut self, id: u32) {
        self.blocks[id].state = BlockState::Free;
        self.merge_with_neighbours(id);
        self.cache(id);
    }

    /// Frees a block that another stream may still use (`free` with `stream_uses`): it leaves the allocated bytes at
    /// once, but serves no request before [`Self::complete_free`].
    ///
    /// # Panics
    /// When `block` is not live.
    pub fn request_free(&mut self, block: Block) {
        // `free` lowers `allocated_bytes` before it records events on the other streams (`insert_events`); only the
        // reuse waits. Collectives of FSDP and DeepSpeed therefore reserve more than live bytes suggest.
        self.allocated -= match block.found() {
            Found::Small(id) => self.small.request_free(id),
            Found::General(id) => {
                let node = &mut self.blocks[id];
                assert!(node.state == BlockState::Allocated, "the block is not live");
                node.state = BlockState::AwaitingFree;
                node.size
            }
        };
    }

    /// Caches a block once the last stream is done with it.
    ///
    /// # Panics
    /// Without a [`Self::request_free`] before.
    pub fn complete_free(&mut self, block: Block) {
        match block.found() {
            Found::Small(id) => self.small.complete_free(id),
            Found::General(id) => {
                let state = self.blocks[id].state;
                assert!(state == BlockState::AwaitingFree, "the block was not let go of");
                self.free_block(id);
            }
        }
    }

    /// Bytes of a live block, which is the number that counts as allocated: the rounded request, and the rest of a
    /// cached block that was not worth splitting.
    #[inline]
    pub fn block_size(&self, block: Block) -> u64 {
        match block.found() {
            Found::Small(id) => self.small.size(id),
            Found::General(id) => self.blocks[id].size,
        }
    }

    /// Device address of a live block.
    #[inline]
    pub fn address(&self, block: Block) -> u64 {
        match block.found() {
            Found::Small(id) => self.small.address(id),
            Found::General(id) => self.blocks[id].address,
        }
    }

    /// `torch.cuda.memory_allocated`.
    pub fn allocated(&self) -> Bytes {
        Bytes::new(self.allocated)
    }

    /// `torch.cuda.memory_reserved`.
    pub fn reserved(&self) -> Bytes {
        Bytes::new(self.reserved)
    }

    /// The part of [`Self::reserved`] that one kind of pool has.
    pub fn reserved_of(&self, kind: PoolKind) -> Bytes {
        Bytes::new(match kind {
            PoolKind::Small => self.reserved_small,
            PoolKind::Large => self.reserved - self.reserved_small,
        })
    }

    /// `torch.cuda.max_memory_allocated`.
    pub fn peak_allocated(&self) -> Bytes {
        Bytes::new(self.peak_allocated)
    }

    /// `torch.cuda.max_memory_reserved`.
    pub fn peak_reserved(&self) -> Bytes {
        Bytes::new(self.peak_reserved)
    }

    /// `torch.cuda.reset_peak_memory_stats`: both peaks start again from the present values.
    pub fn reset_peaks(&mut self) {
        self.peak_allocated = self.allocated;
        self.peak_reserved = self.reserved;
    }

    /// `num_alloc_retries` of `torch.cuda.memory_stats`: number of times that the whole cache was released to serve a
    /// request.
    pub fn num_alloc_retries(&self) -> u64 {
        self.num_alloc_retries
    }

    /// `torch.cuda.set_per_process_memory_fraction`, in bytes: the most that may be reserved from now on.
    pub fn set_limit(&mut self, limit: Bytes) {
        self.options.limit = Some(limit);
    }

    /// Returns true if a segment is released by [`Self::empty_cache`] and by retries alone.
    pub fn gives_back_by_retries_only(&self) -> bool {
        self.has_small_pools
    }

    /// Options that the allocator was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Source of the segments' addresses.
    pub(super) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the index of a stream, making its pools on first use.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn stream_index(&mut self, stream: u32) -> usize {
        if self.streams.first() == Some(&stream) {
            0
        } else {
            self.find_stream(stream)
        }
    }

    #[cold]
    fn find_stream(&mut self, stream: u32) -> usize {
        let known = self.streams.iter().position(|&known| known == stream);
        known.unwrap_or_else(|| self.add_stream(stream))
    }

    fn add_stream(&mut self, stream: u32) -> usize {
        self.streams.push(stream);
        self.small.add_pool();
        self.pools.extend([FreeBlocks::default(), FreeBlocks::default()]);
        self.unmapped.extend([Vec::new(), Vec::new()]);
        self.streams.len() - 1
    }
}
