//! Storages live at one instant of a step.

use super::BlockBytes;
use super::timeline::{Instant, Timeline};
use crate::tape::log::{Allocation, Log, StorageId};
use crate::tape::{Component, Kind};
use crate::units::Bytes;

/// Storages live at one instant of a step, without descriptions: sums over them are cheap.
pub struct Live<'a> {
    log: &'a Log,
    block_bytes: &'a BlockBytes,
    ids: Vec<StorageId>,
    /// Number and total bytes of the storages that share a description, by description.
    sums: Vec<(u64, u64)>,
}

/// One live storage, or several with one description.
pub struct Held<'a> {
    /// Description of the allocation.
    pub allocation: &'a Allocation,
    /// The part of the model that made it.
    pub component: Component,
    /// Number of storages.
    pub count: u64,
    /// Bytes of the allocator's blocks.
    pub bytes: Bytes,
}

impl Held<'_> {
    /// Purpose of the memory.
    pub fn kind(&self) -> Kind {
        self.allocation.kind
    }
}

impl Timeline {
    /// Storages live at an instant, in order of allocation.
    pub fn live(&self, instant: Instant) -> Live<'_> {
        let recorded = self.recorded();
        let allocations = &recorded.log.allocations;
        let ids = self.live_ids(instant);
        let mut sums = vec![(0, 0); allocations.descriptions().len()];
        for &id in &ids {
            let (count, bytes) = &mut sums[allocations.description_of(id)];
            *count += 1;
            *bytes += recorded.block_bytes.of(id);
        }
        Live {
            log: &recorded.log,
            block_bytes: &recorded.block_bytes,
            ids,
            sums,
        }
    }
}

impl<'a> Live<'a> {
    /// Log that describes each storage.
    pub fn log(&self) -> &'a Log {
        self.log
    }

    /// Iterates over all live storages.
    pub fn iter(&self) -> impl Iterator<Item = Held<'a>> {
        self.ids.iter().map(|&id| {
            let allocation = &self.log.allocations[id as usize];
            self.held(allocation, (1, self.block_bytes.of(id)))
        })
    }

    /// Iterates over all live storages, with those of one description summed.
    pub fn by_description(&self) -> impl Iterator<Item = Held<'a>> {
        let descriptions = self.log.allocations.descriptions().iter().zip(&self.sums);
        descriptions
            .filter(|(_, (_, bytes))| *bytes > 0)
            .map(|(allocation, &sum)| self.held(allocation, sum))
    }

    fn held(&self, allocation: &'a Allocation, (count, bytes): (u64, u64)) -> Held<'a> {
        Held {
            allocation,
            count,
            component: self.log.scopes[allocation.scope as usize].component,
            bytes: Bytes::new(bytes),
        }
    }

    /// Bytes of the storages for which `of` returns true.
    pub fn sum(&self, of: impl Fn(&Held<'_>) -> bool) -> Bytes {
        self.by_description()
            .filter(|held| of(held))
            .map(|held| held.bytes)
            .sum()
    }
}
