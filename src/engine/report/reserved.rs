//! Reserved bytes by layout of segments.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::Report;
use crate::order::sort_by_key;
use crate::units::Bytes;

/// Layout of segments in the process that runs. The allocator's best fit takes the lowest of equal blocks, so the order
/// of addresses decides which cached block is split, and so how much is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentLayout {
    /// The first run of a process: nothing is cached, and segments have the addresses of recorded traces of fresh
    /// processes ([`DriverAddresses`](crate::allocator::DriverAddresses)). Of 408 runs measured in a fresh process, 398
    /// reserve this to the byte (`truth/own_process.jsonl`).
    FreshProcess,
    /// A process that has trained before, such as a notebook or a loop over settings: the cuBLAS
    /// workspaces of the former run are cached when the model is made, and addresses ascend.
    ///
    /// `torch.cuda.empty_cache` cannot release the segments of those workspaces, which belong to cuBLAS' handles until
    /// `torch._C._cuda_clearCublasWorkspaces` (`aten/src/ATen/cuda/CublasHandlePool.cpp`). Replayed one after another
    /// with what each leaves behind, two in three rows of `truth/training_steps.jsonl` reserve the measured amount to
    /// the MiB, so this, and not the engine's rules, is the difference between a measured process and a fresh one.
    UsedProcess,
    /// A used process ([`Self::UsedProcess`]) with the large segments in one order drawn at random
    /// ([`ShuffledAddresses`](crate::allocator::ShuffledAddresses)).
    ///
    /// Addresses that only descend or only ascend are the two extremes of a driver; in between, a few runs reserve more
    /// than at either. Of 264 measured rows four reserve over 3% more than at both extremes: two of them match most
    /// drawn orders, and two have segments that an earlier run left behind (`tests/predictions/memory/one_process.rs`).
    DrawnOrder,
    /// A process whose batches are of many lengths, the longest among them
    /// ([`reserved_over`](crate::simulate::reserved_over)).
    ManyLengths,
}

impl SegmentLayout {
    /// English name.
    pub const fn label(self) -> &'static str {
        match self {
            Self::FreshProcess => "in a fresh process",
            Self::UsedProcess => "in a process that has trained before",
            Self::DrawnOrder => "with segments in an order drawn at random",
            Self::ManyLengths => "after batches of many lengths",
        }
    }
}

/// The highest reservation of a run, for one layout of segments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reserved {
    /// Layout of segments.
    pub layout: SegmentLayout,
    /// Highest reserved bytes.
    pub bytes: Bytes,
    /// The reserved segments: bytes of one, and their number, largest first.
    #[serde(skip)]
    pub segments: Vec<(Bytes, u64)>,
}

impl Reserved {
    pub(crate) fn new(layout: SegmentLayout, segments: impl Iterator<Item = Bytes>) -> Self {
        let mut all: Vec<Bytes> = segments.collect();
        sort_by_key(&mut all, |bytes| Reverse(*bytes));
        let alike = all.chunk_by(|a, b| a == b);
        Self {
            layout,
            bytes: all.iter().copied().sum(),
            segments: alike.map(|alike| (alike[0], alike.len() as u64)).collect(),
        }
    }
}

impl Report {
    /// The layout that reserves most, for which a plan must have room; the first of equals.
    pub fn most_reserved(&self) -> Option<&Reserved> {
        self.reserved.iter().rev().max_by_key(|reserved| reserved.bytes)
    }

    /// Adds a layout, which then counts among those of which a run reserves the most.
    pub fn may_reserve(&mut self, more: Reserved) {
        self.peak_reserved = self.peak_reserved.max(more.bytes);
        self.fragmentation = self.peak_reserved.saturating_sub(self.peak_allocated);
        self.reserved.push(more);
    }

    /// The layouts that reserve least and most; `None` if all reserve equally much.
    pub fn reserved_range(&self) -> Option<[&Reserved; 2]> {
        let least = self.reserved.iter().min_by_key(|reserved| reserved.bytes)?;
        let most = self.most_reserved()?;
        (least.bytes < most.bytes).then_some([least, most])
    }
}
