//! Kernels and host ops of a step.

use std::ops::Range;

use crate::tape::work::WorkItem;

/// Kernels and host ops of a step, in order; empty unless requested.
#[derive(Clone, Default)]
pub struct Work {
    items: Vec<WorkItem>,
    /// Forward of the last micro-batch.
    forward: Range<usize>,
    /// Backward of the last micro-batch.
    backward: Range<usize>,
    /// Clipping, scaler and optimizer.
    optimizer: Range<usize>,
    /// Forward and backward of the micro-batch before the last, if it was recorded.
    earlier: Option<[Range<usize>; 2]>,
}

impl Work {
    /// Items, of which forward, backward and update begin at the first three of these, and the update ends at the last.
    pub(crate) fn of(items: Vec<WorkItem>, [forward, backward, update, end]: [usize; 4]) -> Self {
        let marks = WorkMarks {
            before_forward: forward,
            after_forward: backward,
            after_backward: update,
            update,
            end,
            earlier: None,
        };
        marks.divide(items)
    }

    /// All items.
    pub(crate) fn items(&self) -> &[WorkItem] {
        &self.items
    }

    /// Forward of the last micro-batch.
    pub fn forward(&self) -> &[WorkItem] {
        &self.items[self.forward.clone()]
    }

    /// Backward of the last micro-batch.
    pub fn backward(&self) -> &[WorkItem] {
        &self.items[self.backward.clone()]
    }

    /// Forward and backward of the micro-batch before the last; `None` of steps with one.
    pub fn earlier(&self) -> Option<[&[WorkItem]; 2]> {
        let parts = self.earlier.as_ref()?;
        Some(parts.each_ref().map(|part| &self.items[part.clone()]))
    }

    /// Clipping, scaler and optimizer.
    pub fn optimizer(&self) -> &[WorkItem] {
        &self.items[self.optimizer.clone()]
    }

    /// Forward and backward, in the form of [`PassWork`](super::PassWork).
    pub fn phases(&self) -> [impl Iterator<Item = (&[WorkItem], u64)>; 2] {
        [self.forward(), self.backward()].map(|items| std::iter::once((items, 1)))
    }

    /// Returns all items, and the ranges of forward and backward in them.
    pub(super) fn into_passes(self) -> (Vec<WorkItem>, [Range<usize>; 2]) {
        (self.items, [self.forward, self.backward])
    }
}

/// Positions among the work items of a step.
#[derive(Default)]
pub(super) struct WorkMarks {
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    pub update: usize,
    pub end: usize,
    /// Marks of the micro-batch before: its forward, its backward, and its end.
    earlier: Option<[usize; 3]>,
}

impl WorkMarks {
    /// A micro-batch begins; `is_first` if it is known to be the first of a step.
    pub fn begin(&mut self, mark: usize, is_first: bool) {
        let before = [self.before_forward, self.after_forward, self.after_backward];
        let is_of_step = !is_first && before[2] > self.end;
        self.earlier = is_of_step.then_some(before);
        self.before_forward = mark;
    }

    /// Divides the items into the step's phases; the list may be empty.
    pub fn divide(&self, items: Vec<WorkItem>) -> Work {
        let part = |from: usize, to: usize| from.min(items.len())..to.min(items.len());
        Work {
            forward: part(self.before_forward, self.after_forward),
            backward: part(self.after_forward, self.after_backward),
            optimizer: part(self.update, self.end),
            earlier: self
                .earlier
                .map(|[forward, backward, end]| [part(forward, backward), part(backward, end)]),
            items,
        }
    }
}
