//! Rewinds a tape to the point where a model was made, so that the model can run again from there.

use super::core::Tape;
use super::log::{Log, LogMark};

/// A point to which a tape can be rewound.
#[derive(Debug, Clone, Copy)]
pub struct Ready(LogMark);

impl Tape {
    /// Marks the current point, at which a model is ready to run.
    pub fn ready(&self) -> Ready {
        Ready(self.0.log.borrow().mark())
    }

    /// Removes everything recorded since. Of the storages made since, only workspaces of libraries may be live, and all
    /// older ones must be.
    pub fn rewind(&self, to: &Ready) {
        self.0.workspaces.borrow_mut().clear();
        self.0.log.borrow_mut().rewind(&to.0);
    }

    /// Gives access to the log so far.
    pub fn read<R>(&self, f: impl FnOnce(&Log) -> R) -> R {
        f(&self.0.log.borrow())
    }
}
