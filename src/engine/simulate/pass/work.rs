//! Kernels and host ops of a pass.

use std::ops::Range;

use super::super::work::Work;
use crate::tape::Piece;
use crate::tape::work::WorkItem;

/// Kernels and host ops of a pass, stored once for equal blocks.
#[derive(Default)]
pub struct PassWork {
    items: Vec<WorkItem>,
    /// Parts of forward and of backward, in order, each with its number of consecutive repetitions.
    parts: [Vec<(Range<usize>, u64)>; 2],
}

impl PassWork {
    /// Divides the pieces of a recording at `mark`, before which they are forward.
    pub(super) fn new(items: Vec<WorkItem>, pieces: Vec<Piece>, mark: usize) -> Self {
        let mut parts = [Vec::new(), Vec::new()];
        for Piece { range, times, .. } in pieces {
            let middle = mark.clamp(range.start, range.end);
            for (parts, part) in parts.iter_mut().zip([range.start..middle, middle..range.end]) {
                if !part.is_empty() && part.end <= items.len() {
                    parts.push((part, times));
                }
            }
        }
        Self { items, parts }
    }

    /// Forward and backward: items in order, each slice with its number of repetitions.
    pub fn phases(&self) -> [impl Iterator<Item = (&[WorkItem], u64)>; 2] {
        let of = |(range, times): &(Range<usize>, u64)| (&self.items[range.clone()], *times);
        self.parts.each_ref().map(|parts| parts.iter().map(of))
    }
}

impl From<Work> for PassWork {
    fn from(work: Work) -> Self {
        let (items, passes) = work.into_passes();
        let parts = passes.map(|part| vec![(part, 1)]);
        Self { items, parts }
    }
}
