//! Which part of a model is made, where GPUs have consecutive ones.

use std::ops::Range;

/// One of the parts into which a pipeline cuts a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Its place among them.
    pub index: u64,
    /// How many there are; 1 where nothing is cut.
    pub count: u64,
    /// Backwards begin once all forwards are done (`GPipe`), rather than as soon as they can (1F1B).
    pub fills_first: bool,
}

impl Stage {
    /// A model that is not cut.
    pub const WHOLE: Self = Self {
        index: 0,
        count: 1,
        fills_first: false,
    };

    /// Whether nothing is cut.
    pub const fn is_whole(self) -> bool {
        self.count == 1
    }

    /// Whether it takes the batch.
    pub const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Whether it gives the loss.
    pub const fn is_last(self) -> bool {
        self.index + 1 == self.count
    }

    /// Its own of so many blocks: all parts have as many.
    pub fn layers(self, all: usize) -> Range<usize> {
        let each = all / self.count as usize;
        let first = self.index as usize * each;
        first..first + each
    }

    /// Micro-batches of so many whose forward is done before the first backward begins.
    pub fn in_flight(self, micro_batches: u64) -> u64 {
        if self.fills_first {
            micro_batches
        } else {
            micro_batches.min(self.count - self.index)
        }
    }
}
