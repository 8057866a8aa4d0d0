//! Allocations of a recording, in order.

use std::ops::Range;

use super::{AllocationSite, allocations};
use vramscope_engine::recording::RecordedRun;
use vramscope_engine::tape::log::Log;
use vramscope_engine::units::Bytes;

/// Allocations of a run, including kernels' internal memory.
pub(super) struct RecordingSide<'a> {
    /// Storages, in order of allocation.
    pub allocations: Vec<u32>,
    log: &'a Log,
}

impl<'a> RecordingSide<'a> {
    /// Collects the allocations of a whole run.
    pub fn of(run: &'a RecordedRun) -> Self {
        Self {
            allocations: allocations(run, run.all_events()).collect(),
            log: run.log(),
        }
    }

    /// Returns the range of allocations in the last step.
    pub fn last_step(&self, run: &RecordedRun) -> Range<usize> {
        let Some([begin, end]) = run.last_span() else {
            return 0..0;
        };
        let before = allocations(run, &run.all_events()[..begin]).count();
        let within = allocations(run, &run.all_events()[begin..end]).count();
        before..(before + within).min(self.allocations.len())
    }

    /// Returns the bytes of each allocation.
    pub fn sizes(&self) -> Vec<u64> {
        self.allocations
            .iter()
            .map(|&id| self.log.allocations[id as usize].bytes)
            .collect()
    }

    /// Describes an allocation.
    pub fn made(&self, at: usize) -> AllocationSite {
        let allocation = &self.log.allocations[self.allocations[at] as usize];
        let module = self.log.path(allocation.scope);
        let place = match module.is_empty() {
            true => allocation.name.to_owned(),
            false => format!("{module}: {}", allocation.name),
        };
        AllocationSite {
            bytes: Bytes::new(allocation.bytes),
            place,
        }
    }
}
