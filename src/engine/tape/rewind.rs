//! A record that goes back to where a model was made, so that the model can run again from there.

use super::core::Tape;
use super::log::{Log, LogMark};

/// Where a record can go back to.
#[derive(Debug, Clone, Copy)]
pub struct Ready(LogMark);

impl Tape {
    /// What was made is ready to run.
    pub fn ready(&self) -> Ready {
        Ready(self.0.log.borrow().mark())
    }

    /// Forgets what was written since. Nothing that was made since may live any more but workspaces of libraries, and
    /// all that was there lives still.
    pub fn rewind(&self, to: &Ready) {
        self.0.workspaces.borrow_mut().clear();
        self.0.log.borrow_mut().rewind(&to.0);
    }

    /// Looks at what was written so far.
    pub fn read<R>(&self, f: impl FnOnce(&Log) -> R) -> R {
        f(&self.0.log.borrow())
    }
}
