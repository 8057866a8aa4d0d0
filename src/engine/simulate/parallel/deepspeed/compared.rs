//! The model that DPO compares with, in parts under ZeRO stage 3: TRL gives it an engine without an optimizer
//! (`prepare_deepspeed` of `trl/models/utils.py`), whose hooks and whose order of modules are its own
//! (`DeepSpeedZeRoOffload`).

use std::rc::Rc;

use super::super::super::wrapper::Wrapper;
use super::shards::Shards;
use super::watcher::Watcher;
use crate::setup::Zero;
use crate::tape::Tape;
use crate::tape::log::StorageId;

/// The engine around it.
pub(super) struct Compared {
    pub watcher: Rc<Watcher>,
}

/// Stream of its gathers, behind those of the engine that trains.
const GATHER: u32 = 3;

impl Compared {
    pub fn new(shards: Shards, zero: Zero) -> Self {
        Self {
            watcher: Rc::new(Watcher::new(shards, (zero, false), 0)),
        }
    }
}

impl Wrapper for Compared {
    fn begin(&self, _: bool) {}

    fn before_forward(&self, t: &Tape) {
        let is_traced = t.is_grad_enabled();
        t.no_grad(|| self.watcher.begin(t, is_traced));
    }

    fn after_forward(&self, t: &Tape) {
        t.no_grad(|| self.watcher.end(t));
    }

    /// Its engine makes a stream of its own.
    fn streams(&self) -> Vec<(StorageId, u32)> {
        let streams = self.watcher.coordinator.borrow().shards.streams.clone();
        streams.into_iter().map(|(id, _)| (id, GATHER)).collect()
    }
}
