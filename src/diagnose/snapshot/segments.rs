//! Segments and their blocks at the moment of the snapshot.

use serde::{Deserialize, Serialize};

use super::stacks::StackId;
use vramscope_engine::units::Bytes;

/// A segment: memory that the driver provided in one piece, or one mapped range of an expandable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Device address.
    pub address: u64,
    /// Size in bytes.
    pub size: Bytes,
    /// Index of the device.
    pub device: u32,
    /// Stream that the segment belongs to.
    pub stream: u64,
    /// True if the segment is expandable.
    pub is_expandable: bool,
    /// Blocks by ascending address.
    pub blocks: Vec<Block>,
}

/// One block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Device address.
    pub address: u64,
    /// Size in bytes.
    pub size: Bytes,
    /// True if a tensor holds the block, or another stream still uses it.
    pub is_live: bool,
    /// Stack that allocated the block.
    pub stack: StackId,
}

impl Segment {
    /// Bytes held by tensors.
    pub fn live(&self) -> Bytes {
        let live = self.blocks.iter().filter(|block| block.is_live);
        live.map(|block| block.size)
            .fold(Bytes::ZERO, |a, b| Bytes::new(a.get().saturating_add(b.get())))
    }

    /// Largest free block in bytes.
    pub fn largest_hole(&self) -> Bytes {
        let free = self.blocks.iter().filter(|block| !block.is_live);
        free.map(|block| block.size).max().unwrap_or_default()
    }
}

/// Sums over all segments of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holes {
    /// Number of segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub reserved: Bytes,
    /// Bytes held by tensors.
    pub live: Bytes,
    /// Free bytes in segments that tensors partly occupy; they cannot be returned to the driver.
    pub within: Bytes,
    /// Bytes of segments without any live block, which `empty_cache()` returns to the driver.
    pub empty: Bytes,
    /// Largest free block in bytes.
    pub largest: Bytes,
}

impl Holes {
    /// Adds up segments.
    pub fn of<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Self {
        let add = |a: Bytes, b: Bytes| Bytes::new(a.get().saturating_add(b.get()));
        segments.into_iter().fold(Self::default(), |sum, segment| {
            let live = segment.live();
            let free = segment.size.saturating_sub(live);
            let (within, empty) = match live {
                Bytes::ZERO => (Bytes::ZERO, free),
                _ => (free, Bytes::ZERO),
            };
            Self {
                segments: sum.segments + 1,
                reserved: add(sum.reserved, segment.size),
                live: add(sum.live, live),
                within: add(sum.within, within),
                empty: add(sum.empty, empty),
                largest: sum.largest.max(segment.largest_hole()),
            }
        })
    }
}
