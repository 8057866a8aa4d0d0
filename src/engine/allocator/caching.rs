use std::num::NonZeroU32;

use super::arena::{Arena, BlockState};
use super::driver_addresses::DriverAddresses;
use super::error::OutOfMemory;
use super::expandable::Range;
use super::free_blocks::FreeBlocks;
use super::options::Options;
use super::segment_source::SegmentSource;
use super::size::{PoolKind, round_size};
use crate::units::Bytes;

/// A live allocation. Ids are used again once freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(NonZeroU32);

impl Block {
    /// The block of this id, which is no end of a chain.
    #[inline]
    pub(super) fn of(id: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(id))
    }

    #[inline]
    pub(super) fn id(self) -> u32 {
        self.0.get() - 1
    }
}

/// The caching allocator of one device (`DeviceCachingAllocator`).
#[derive(Debug, Clone)]
pub struct CachingAllocator<S = DriverAddresses> {
    pub(super) options: Options,
    /// Whether no option changes the search of the cache.
    pub(super) plain_search: bool,
    pub(super) source: S,
    pub(super) blocks: Arena,
    /// Two for each stream: small, then large.
    pub(super) pools: Vec<FreeBlocks>,
    /// Unmapped blocks of each pool by address (`BlockPool::unmapped`).
    pub(super) unmapped: Vec<Vec<u32>>,
    /// All expandable segments ever made.
    pub(super) ranges: Vec<Range>,
    pub(super) streams: Vec<u32>,
    pub(super) reserved: u64,
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
    /// An empty allocator whose segments lie where `cudaMalloc` would put them.
    pub fn new(options: Options) -> Self {
        Self::with_source(options, DriverAddresses::default())
    }
}

impl<S: SegmentSource> CachingAllocator<S> {
    /// An empty allocator whose segments lie where `source` says.
    pub fn with_source(options: Options, source: S) -> Self {
        Self {
            plain_search: !options.expandable_segments && options.max_split_size.is_none(),
            options,
            source,
            blocks: Arena::default(),
            pools: Vec::new(),
            unmapped: Vec::new(),
            ranges: Vec::new(),
            streams: Vec::new(),
            reserved: 0,
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
    /// When nothing cached serves the request and, with all cached segments given back, nothing more
    /// may be reserved.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn alloc(&mut self, bytes: u64, stream: u32) -> Result<Block, OutOfMemory> {
        let size = round_size(bytes.min(Self::LARGEST_REQUEST), &self.options);
        let kind = PoolKind::of(size);
        let request = Request {
            size,
            kind,
            pool: self.pool_index(stream, kind),
        };
        let found = match self.take_cached(request) {
            Some(id) => id,
            None => self.take_new(request)?,
        };
        Ok(self.hand_out(found, size))
    }

    /// Allocates `bytes` and frees them at once, as libraries do with scratch memory; the bytes of the
    /// block. From the cache this takes no more than a look: a block that is cut and freed is whole
    /// again.
    ///
    /// # Errors
    /// As [`Self::alloc`].
    #[inline]
    pub fn alloc_and_free(&mut self, bytes: u64, stream: u32) -> Result<u64, OutOfMemory> {
        if let Some(size) = self.look(bytes, stream) {
            self.peak_allocated = self.peak_allocated.max(self.allocated + size);
            return Ok(size);
        }
        let block = self.alloc(bytes, stream)?;
        let size = self.block_size(block);
        self.free(block);
        Ok(size)
    }

    /// Counts a block of `bytes` as handed out by a pool whose layout the caller knows to repeat itself,
    /// so that nobody need look for it.
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

    /// Bytes of the block that the cache would serve, where no option depends on when it did.
    #[inline]
    fn look(&mut self, bytes: u64, stream: u32) -> Option<u64> {
        if !self.gives_back_by_retries_only() {
            return None;
        }
        let size = round_size(bytes.min(Self::LARGEST_REQUEST), &self.options);
        let pool = self.pool_index(stream, PoolKind::of(size));
        let id = self.pools[pool as usize].best_fit(&self.blocks, size)?;
        let is_cut = self.should_split(id, size);
        Some(if is_cut { size } else { self.blocks[id].size })
    }

    /// `one_exa_bytes` of `NativeCachingAllocator::allocate`: no request above can succeed.
    const LARGEST_REQUEST: u64 = 1 << 60;

    /// Frees a block that only its own stream has used (`free`).
    ///
    /// # Panics
    /// When `block` is not live: freed before, or of another allocator.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn free(&mut self, block: Block) {
        self.request_free(block);
        self.complete_free(block);
    }

    /// The owner lets go of a block that another stream may still use (`free` with `stream_uses`):
    /// it leaves the allocated bytes at once, but serves no request before [`Self::complete_free`].
    ///
    /// # Panics
    /// When `block` is not live.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn request_free(&mut self, block: Block) {
        let node = &mut self.blocks[block.id()];
        assert!(node.state == BlockState::Allocated, "the block is not live");
        node.state = BlockState::AwaitingFree;
        self.allocated -= node.size;
    }

    /// The last stream is done with a block: merges it with its free neighbours and caches it
    /// (`free_block`).
    ///
    /// # Panics
    /// Without a [`Self::request_free`] before.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn complete_free(&mut self, block: Block) {
        let node = &mut self.blocks[block.id()];
        assert!(node.state == BlockState::AwaitingFree, "the block was not let go of");
        node.state = BlockState::Free;
        self.merge_with_neighbours(block.id());
        self.cache(block.id());
    }

    /// Bytes of a live block, which is what counts as allocated: rounded, and with the rest of a
    /// cached block that was not worth splitting.
    #[inline]
    pub fn block_size(&self, block: Block) -> u64 {
        self.blocks[block.id()].size
    }

    /// Device address of a live block.
    #[inline]
    pub fn address(&self, block: Block) -> u64 {
        self.blocks[block.id()].address
    }

    /// `torch.cuda.memory_allocated`.
    pub fn allocated(&self) -> Bytes {
        Bytes::new(self.allocated)
    }

    /// `torch.cuda.memory_reserved`.
    pub fn reserved(&self) -> Bytes {
        Bytes::new(self.reserved)
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

    /// `num_alloc_retries` of `torch.cuda.memory_stats`: how often the whole cache was given back to
    /// serve a request.
    pub fn num_alloc_retries(&self) -> u64 {
        self.num_alloc_retries
    }

    /// `torch.cuda.set_per_process_memory_fraction`, as bytes: what may be reserved from now on.
    pub fn set_limit(&mut self, limit: Bytes) {
        self.options.limit = Some(limit);
    }

    /// Whether a segment is given back by [`Self::empty_cache`] and by retries alone.
    pub fn gives_back_by_retries_only(&self) -> bool {
        self.plain_search && self.options.garbage_collection_threshold <= 0.0
    }

    /// What the allocator was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Where segments come from.
    pub(super) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Index of the pool of a stream, which is made on first use.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn pool_index(&mut self, stream: u32, kind: PoolKind) -> u32 {
        let stream = if self.streams.first() == Some(&stream) {
            0
        } else {
            self.find_stream(stream)
        };
        (2 * stream + kind as usize) as u32
    }

    #[cold]
    fn find_stream(&mut self, stream: u32) -> usize {
        let known = self.streams.iter().position(|&known| known == stream);
        known.unwrap_or_else(|| self.add_stream(stream))
    }

    fn add_stream(&mut self, stream: u32) -> usize {
        self.streams.push(stream);
        self.pools.extend([FreeBlocks::default(), FreeBlocks::default()]);
        self.unmapped.extend([Vec::new(), Vec::new()]);
        self.streams.len() - 1
    }
}
