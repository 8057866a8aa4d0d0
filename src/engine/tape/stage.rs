//! Stages of a pipeline, each with consecutive blocks of a model.

use std::ops::Range;

/// One of the parts into which a pipeline cuts a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// Index of the stage.
    pub index: u64,
    /// Number of stages; 1 if the model is whole.
    pub count: u64,
    /// True if backwards begin once all forwards are done (`GPipe`), false if they begin as soon as they can (1F1B).
    pub fills_first: bool,
}

impl Stage {
    /// A whole model.
    pub const WHOLE: Self = Self {
        index: 0,
        count: 1,
        fills_first: false,
    };

    /// Returns true if the model is whole.
    pub const fn is_whole(self) -> bool {
        self.count == 1
    }

    /// Returns true for the stage that takes the batch.
    pub const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Returns true for the stage that computes the loss.
    pub const fn is_last(self) -> bool {
        self.index + 1 == self.count
    }

    /// The stage's own blocks out of `all`; every stage has equally many.
    pub fn layers(self, all: usize) -> Range<usize> {
        let each = all / self.count as usize;
        let first = self.index as usize * each;
        first..first + each
    }

    /// Micro-batches whose forward is done before the first backward begins.
    pub fn in_flight(self, micro_batches: u64) -> u64 {
        if self.fills_first {
            micro_batches
        } else {
            micro_batches.min(self.count - self.index)
        }
    }
}
