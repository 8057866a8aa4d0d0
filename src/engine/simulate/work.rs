//! What GPU and host do in a step.

use crate::tape::work::Item;

/// What GPU and host do in a step, in order; empty where nobody asked.
#[derive(Default)]
pub struct Work {
    /// Forward of the last micro-batch.
    pub forward: Vec<Item>,
    /// Its backward.
    pub backward: Vec<Item>,
    /// Clipping, scaler and optimizer.
    pub optimizer: Vec<Item>,
}

impl Work {
    /// Forward and backward, as [`PassWork`](super::PassWork) gives them.
    pub fn phases(&self) -> [impl Iterator<Item = (&[Item], u64)>; 2] {
        [&self.forward, &self.backward].map(|items| std::iter::once((&items[..], 1)))
    }
}

/// Positions among what GPU and host do.
#[derive(Default)]
pub(super) struct WorkMarks {
    pub before_forward: usize,
    pub after_forward: usize,
    pub after_backward: usize,
    pub update: usize,
    pub end: usize,
}

impl WorkMarks {
    /// Takes the phases out of what was written, from the last on; there may be nothing.
    pub fn cut(&self, mut items: Vec<Item>) -> Work {
        let mut part = |from: usize, to: usize| {
            items.truncate(to);
            items.split_off(from.min(items.len()))
        };
        let optimizer = part(self.update, self.end);
        let backward = part(self.after_forward, self.after_backward);
        let forward = part(self.before_forward, self.after_forward);
        Work {
            forward,
            backward,
            optimizer,
        }
    }
}
