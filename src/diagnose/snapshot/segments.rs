//! Segments and their blocks at the moment of the snapshot.

use serde::{Deserialize, Serialize};

use super::stacks::StackId;
use vramscope_engine::units::Bytes;

/// One segment: what came from the driver in one piece, or one mapped range of an expandable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: Bytes,
    /// The device.
    pub device: u32,
    /// The stream that it serves.
    pub stream: u64,
    /// Whether it can grow.
    pub is_expandable: bool,
    /// Its blocks by address.
    pub blocks: Vec<Block>,
}

/// One block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: Bytes,
    /// Whether a tensor holds it, or another stream still uses it.
    pub is_live: bool,
    /// Where it was allocated.
    pub stack: StackId,
}

impl Segment {
    /// What tensors hold of it.
    pub fn live(&self) -> Bytes {
        let live = self.blocks.iter().filter(|block| block.is_live);
        live.map(|block| block.size)
            .fold(Bytes::ZERO, |a, b| Bytes::new(a.get().saturating_add(b.get())))
    }

    /// Its largest hole: free bytes between what tensors hold.
    pub fn largest_hole(&self) -> Bytes {
        let free = self.blocks.iter().filter(|block| !block.is_live);
        free.map(|block| block.size).max().unwrap_or_default()
    }
}

/// What all segments of a device add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holes {
    /// Number of segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub reserved: Bytes,
    /// What tensors hold.
    pub live: Bytes,
    /// Free bytes of segments that tensors hold other parts of: nobody else can have them.
    pub within: Bytes,
    /// Bytes of segments that no tensor holds a part of: `empty_cache()` gives them back.
    pub empty: Bytes,
    /// The largest free piece.
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
