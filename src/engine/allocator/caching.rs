use super::arena::{Arena, BlockState, NONE, Node};
use super::driver_addresses::DriverAddresses;
use super::error::OutOfMemory;
use super::free_blocks::{Entry, FreeBlocks};
use super::options::Options;
use super::segment_source::SegmentSource;
use super::size::{MIN_BLOCK, PoolKind, SMALL_SIZE, round_size, segment_size};
use crate::units::Bytes;

/// A live allocation. Ids are used again once freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block(pub(super) u32);

/// The caching allocator of one device (`DeviceCachingAllocator`).
#[derive(Debug, Clone)]
pub struct CachingAllocator<S = DriverAddresses> {
    pub(super) options: Options,
    pub(super) source: S,
    pub(super) blocks: Arena,
    /// Two for each stream: small, then large.
    pub(super) pools: Vec<FreeBlocks>,
    pub(super) streams: Vec<u32>,
    pub(super) reserved: u64,
    peak_reserved: u64,
    allocated: u64,
    peak_allocated: u64,
    num_alloc_retries: u64,
    /// Searches of the small and of the large pools (`get_free_blocks_call_count`).
    pub(super) searches: [u32; 2],
}

/// What a request became (`AllocParams`).
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
            options,
            source,
            blocks: Arena::default(),
            pools: Vec::new(),
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
    #[inline]
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

    /// `one_exa_bytes` of `NativeCachingAllocator::allocate`: no request above can succeed.
    const LARGEST_REQUEST: u64 = 1 << 60;

    /// Frees a block that only its own stream has used (`free`).
    ///
    /// # Panics
    /// When `block` is not live: freed before, or of another allocator.
    #[inline]
    pub fn free(&mut self, block: Block) {
        self.request_free(block);
        self.complete_free(block);
    }

    /// The owner lets go of a block that another stream may still use (`free` with `stream_uses`):
    /// it leaves the allocated bytes at once, but serves no request before [`Self::complete_free`].
    ///
    /// # Panics
    /// When `block` is not live.
    #[inline]
    pub fn request_free(&mut self, block: Block) {
        let node = &mut self.blocks[block.0];
        assert!(node.state == BlockState::Allocated, "the block is not live");
        node.state = BlockState::AwaitingFree;
        self.allocated -= node.size;
    }

    /// The last stream is done with a block: merges it with its free neighbours and caches it
    /// (`free_block`).
    ///
    /// # Panics
    /// Without a [`Self::request_free`] before.
    #[inline]
    pub fn complete_free(&mut self, block: Block) {
        let node = &mut self.blocks[block.0];
        assert!(node.state == BlockState::AwaitingFree, "the block was not let go of");
        node.state = BlockState::Free;
        let (prev, next) = (node.prev, node.next);
        self.merge(block.0, prev);
        self.merge(block.0, next);
        self.cache(block.0);
    }

    /// Bytes of a live block, which is what counts as allocated: rounded, and with the rest of a
    /// cached block that was not worth splitting.
    #[inline]
    pub fn block_size(&self, block: Block) -> u64 {
        self.blocks[block.0].size
    }

    /// Device address of a live block.
    #[inline]
    pub fn address(&self, block: Block) -> u64 {
        self.blocks[block.0].address
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

    /// What the allocator was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// A cached block for the request, out of its pool (`get_free_block`).
    #[inline]
    fn take_cached(&mut self, request: Request) -> Option<u32> {
        self.searches[request.kind as usize] = self.searches[request.kind as usize].wrapping_add(1);
        if self.options.max_split_size.is_some() {
            return self.take_cached_unless_oversize(request);
        }
        self.pools[request.pool as usize]
            .take_best_fit(request.size)
            .map(|entry| entry.id)
    }

    /// [`Self::take_cached`] under `max_split_size`: an oversize block serves large requests only, and
    /// only those near its size.
    fn take_cached_unless_oversize(&mut self, request: Request) -> Option<u32> {
        let max_split = self.options.max_split_size.map_or(u64::MAX, Bytes::get);
        let pool = &mut self.pools[request.pool as usize];
        let entry = pool.at_least(request.size).next()?;
        let limit = if request.size < max_split {
            max_split
        } else {
            request.size.saturating_add(self.options.max_non_split_rounding.get())
        };
        if entry.size >= limit {
            return None;
        }
        pool.remove(entry);
        Some(entry.id)
    }

    /// A block from a new segment, after giving back as much of the cache as it takes (`malloc`).
    #[cold]
    fn take_new(&mut self, request: Request) -> Result<u32, OutOfMemory> {
        self.collect_garbage();
        if let Some(id) = self.reserve(request) {
            return Ok(id);
        }
        if self.release_available(request)
            && let Some(id) = self.reserve(request)
        {
            return Ok(id);
        }
        self.empty_cache();
        self.num_alloc_retries += 1;
        self.reserve(request).ok_or_else(|| self.out_of_memory(request))
    }

    fn out_of_memory(&self, request: Request) -> OutOfMemory {
        OutOfMemory {
            requested: Bytes::new(segment_size(request.size)),
            allocated: self.allocated(),
            reserved: self.reserved(),
            limit: self
                .options
                .limit
                .into_iter()
                .chain(self.options.capacity)
                .min()
                .unwrap_or(Bytes::new(Self::LARGEST_REQUEST)),
        }
    }

    /// A new segment, as one block outside its pool; `None` when it may not or cannot be reserved
    /// (`alloc_block`).
    fn reserve(&mut self, request: Request) -> Option<u32> {
        let size = segment_size(request.size);
        let allowed = |limit: Option<Bytes>| limit.is_none_or(|limit| self.reserved + size <= limit.get());
        if size >= Self::LARGEST_REQUEST || !allowed(self.options.limit) || !allowed(self.options.capacity) {
            return None;
        }
        let address = self.source.reserve(size);
        self.count_reserved(size);
        Some(self.blocks.insert(Node {
            address,
            size,
            prev: NONE,
            next: NONE,
            pool: request.pool,
            cached_at: 0,
            state: BlockState::Free,
            kind: request.kind,
            expandable: false,
        }))
    }

    pub(super) fn count_reserved(&mut self, size: u64) {
        self.reserved += size;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
    }

    /// Makes a block live, split to `size` where that is worth it (`alloc_found_block`).
    #[inline]
    fn hand_out(&mut self, id: u32, size: u64) -> Block {
        let remaining = self.blocks[id].size - size;
        if self.should_split(id, size, remaining) {
            self.split_off_rest(id, size);
        }
        let node = &mut self.blocks[id];
        node.state = BlockState::Allocated;
        self.allocated += node.size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        Block(id)
    }

    /// Whether `remaining` bytes are worth a block of their own (`should_split`).
    #[inline]
    fn should_split(&self, id: u32, size: u64, remaining: u64) -> bool {
        if self.blocks[id].kind == PoolKind::Small || self.options.expandable_segments {
            remaining >= MIN_BLOCK
        } else {
            remaining > SMALL_SIZE && self.options.max_split_size.is_none_or(|max| size < max.get())
        }
    }

    /// Cuts a block to its first `size` bytes and caches the rest.
    #[inline]
    fn split_off_rest(&mut self, id: u32, size: u64) {
        let node = &mut self.blocks[id];
        let next = node.next;
        let rest = Node {
            address: node.address + size,
            size: node.size - size,
            ..node.clone()
        };
        node.size = size;
        let rest = self.blocks.insert(rest);
        self.blocks.splice(id, rest, next);
        self.cache(rest);
    }

    /// Puts a block into its pool (`BlockPool::insert_into_blocks`).
    #[inline]
    pub(super) fn cache(&mut self, id: u32) {
        let searches = self.searches;
        let node = &mut self.blocks[id];
        node.state = BlockState::Free;
        node.cached_at = searches[node.kind as usize];
        let entry = Entry {
            size: node.size,
            address: node.address,
            id,
        };
        self.pools[node.pool as usize].insert(entry);
    }

    /// Takes in the neighbour `other` if it is free too (`try_merge_blocks`).
    #[inline]
    pub(super) fn merge(&mut self, id: u32, other: u32) {
        if other == NONE || self.blocks[other].state != self.blocks[id].state {
            return;
        }
        let Node {
            address,
            size,
            prev,
            next,
            pool,
            ..
        } = self.blocks[other];
        self.pools[pool as usize].remove(Entry {
            size,
            address,
            id: other,
        });
        let before = self.blocks[id].prev == other;
        let node = &mut self.blocks[id];
        node.size += size;
        if before {
            node.address = address;
            let next = node.next;
            self.blocks.splice(prev, id, next);
        } else {
            let prev = node.prev;
            self.blocks.splice(prev, id, next);
        }
        self.blocks.remove(other);
    }

    /// Index of the pool of a stream, which is made on first use.
    #[inline]
    fn pool_index(&mut self, stream: u32, kind: PoolKind) -> u32 {
        let stream = self
            .streams
            .iter()
            .position(|&known| known == stream)
            .unwrap_or_else(|| self.add_stream(stream));
        (2 * stream + kind as usize) as u32
    }

    #[cold]
    fn add_stream(&mut self, stream: u32) -> usize {
        self.streams.push(stream);
        self.pools.extend([FreeBlocks::default(), FreeBlocks::default()]);
        self.streams.len() - 1
    }
}
