//! What GPU and host do in a pass.

use std::ops::Range;

use super::super::work::Work;
use crate::tape::Piece;
use crate::tape::work::Item;

/// What GPU and host do in a pass. What blocks that do alike have in common is there once.
#[derive(Default)]
pub struct PassWork {
    items: Vec<Item>,
    /// Parts of forward and of backward, in order, each with how often it comes one after the other.
    parts: [Vec<(Range<usize>, u64)>; 2],
}

impl PassWork {
    /// Of pieces of a record: those before a mark are forward.
    pub(super) fn new(items: Vec<Item>, pieces: Vec<Piece>, mark: usize) -> Self {
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

    /// Forward and backward: items in order, all of them so many times.
    pub fn phases(&self) -> [impl Iterator<Item = (&[Item], u64)>; 2] {
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
