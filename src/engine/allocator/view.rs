//! Snapshots and fingerprints of the allocator's memory layout.

use super::arena::{BlockState, NONE, Node};
use super::caching::CachingAllocator;
use super::size::{PoolKind, SMALL_SEGMENT};
use crate::order::sort_by_key;
use crate::units::Bytes;

/// One segment as `torch.cuda.memory_snapshot` shows it; for an expandable segment, one range of mapped memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentView {
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The stream that it serves.
    pub stream: u32,
    /// The pool that it serves.
    pub pool: PoolKind,
    /// True for an expandable segment, which can grow.
    pub expandable: bool,
    /// Blocks by address, without gaps.
    pub blocks: Vec<BlockView>,
}

/// One block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockView {
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Live, awaiting its free, or cached.
    pub state: BlockState,
}

impl<S> CachingAllocator<S> {
    /// All segments by address (`snapshot`).
    pub fn segments(&self) -> impl Iterator<Item = SegmentView> {
        let heads = self.blocks.iter().map(|(_, node)| node);
        let heads = heads.filter(|node| self.is_head(node));
        let mut segments: Vec<SegmentView> = heads
            .map(|head| self.segment(head))
            .chain(self.small_segments())
            .collect();
        sort_by_key(&mut segments, |segment| segment.address);
        segments.into_iter()
    }

    /// Bytes of each segment of the pools of one kind, in no particular order.
    pub fn segment_sizes(&self, kind: PoolKind) -> impl Iterator<Item = Bytes> {
        let heads = self.blocks.iter().map(|(_, node)| node);
        let small = if kind == PoolKind::Small { self.small.count() } else { 0 };
        heads
            .filter(move |node| node.kind == kind && self.is_head(node))
            .map(|head| self.mapped_from(head).map(|node| Bytes::new(node.size)).sum())
            .chain(std::iter::repeat_n(Bytes::new(SMALL_SEGMENT), small))
    }

    /// A hash of the whole layout: segments, blocks, their states and streams.
    ///
    /// Two allocators with equal options and equal fingerprints answer the same requests with the same addresses from then on.
    /// It takes one pass over all blocks, and their ids do not matter.
    pub fn fingerprint(&self) -> u64 {
        [PoolKind::Small, PoolKind::Large]
            .map(|kind| self.fingerprint_of(kind))
            .into_iter()
            .fold(0, u64::wrapping_add)
    }

    /// The part of [`Self::fingerprint`] that one kind of pool has. Requests of one kind never touch the other's blocks. It is
    /// the sum of the blocks' hashes, which does not depend on the order in which blocks are stored.
    pub fn fingerprint_of(&self, kind: PoolKind) -> u64 {
        let general = self.blocks.iter().filter(|(_, node)| node.kind == kind);
        let general = general.map(|(_, node)| self.hash(node));
        let small = self.small_segments().filter(|_| kind == PoolKind::Small);
        let small = small.flat_map(|segment| {
            let start = segment.address;
            let stream = segment.stream;
            let blocks = segment.blocks.into_iter();
            blocks.map(move |block| {
                let flags = flags(block.state, PoolKind::Small, stream) | u64::from(block.address == start) << 4;
                hash([block.address, block.size, flags, 0])
            })
        });
        general.chain(small).fold(0, u64::wrapping_add)
    }

    fn hash(&self, node: &Node) -> u64 {
        // Each stream has two pools.
        let stream = self.streams[node.pool as usize / 2];
        let collects_garbage = self.options.garbage_collection_threshold > 0.0 && node.state == BlockState::Free;
        let age = if collects_garbage {
            self.searches[node.kind as usize].wrapping_sub(node.cached_at)
        } else {
            0
        };
        let flags = flags(node.state, node.kind, stream)
            | u64::from(node.range != NONE) << 3
            | u64::from(node.prev == NONE) << 4;
        hash([node.address, node.size, flags, u64::from(age)])
    }

    /// Returns true if mapped memory starts at this block.
    fn is_head(&self, node: &Node) -> bool {
        node.state != BlockState::Unmapped
            && (node.prev == NONE || self.blocks[node.prev].state == BlockState::Unmapped)
    }

    /// Iterates over the blocks of the segment that starts at `head`.
    fn mapped_from<'a>(&'a self, head: &'a Node) -> impl Iterator<Item = &'a Node> {
        let next = |node: &&Node| (node.next != NONE).then(|| &self.blocks[node.next]);
        std::iter::successors(Some(head), next).take_while(|node| node.state != BlockState::Unmapped)
    }

    fn small_segments(&self) -> impl Iterator<Item = SegmentView> {
        self.small.segments().map(|(pool, blocks)| SegmentView {
            address: blocks[0].address,
            size: SMALL_SEGMENT,
            stream: self.streams[pool],
            pool: PoolKind::Small,
            expandable: false,
            blocks,
        })
    }

    fn segment(&self, head: &Node) -> SegmentView {
        let blocks: Vec<BlockView> = self
            .mapped_from(head)
            .map(|node| BlockView {
                address: node.address,
                size: node.size,
                state: node.state,
            })
            .collect();
        SegmentView {
            address: head.address,
            size: blocks.iter().map(|block| block.size).sum(),
            stream: self.streams[head.pool as usize / 2],
            pool: head.kind,
            expandable: head.range != NONE,
            blocks,
        }
    }
}

/// Bits of a block's state (0 and 1), pool (2) and stream (from 5 on). Callers add bit 3, for an expandable segment, and bit 4,
/// for the first block of a segment.
fn flags(state: BlockState, kind: PoolKind, stream: u32) -> u64 {
    state as u64 | (kind as u64) << 2 | u64::from(stream) << 5
}

fn hash(words: [u64; 4]) -> u64 {
    words.into_iter().fold(0, mix)
}

/// Mixes one word into a hash: the finalizer of SplitMix64 (Steele, Lea, Flood 2014) over the sum.
fn mix(hash: u64, word: u64) -> u64 {
    let z = hash.wrapping_add(word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
