//! Events of an operation, kept to be repeated for others of the same size.
//!
//! Attention over windows runs the same kernels for each of thousands of segments. Run through the tape one by one they
//! would take most of a recording's time, and their descriptions most of its memory.

use std::ops::Range;

use super::kind::Kind;
use super::log::{Allocation, Event, Log, ScopeId, StorageId};
use super::why::Why;
use crate::allocator::{MIN_BLOCK, PoolKind};

/// Allocations and frees of storages that are numbered from 0: first the known ones, then the new ones, in order.
#[derive(Default)]
pub(super) struct Script {
    allocations: Vec<Allocation>,
    events: Vec<Event>,
    /// Storage of the log behind each number.
    pub storages: Vec<StorageId>,
    /// Numbers of the storages that stay live.
    pub alive: Vec<u32>,
}

impl Script {
    /// Extracts the part `range` of a log. Storages that are neither `known` nor allocated in it are left out, and so
    /// are library workspaces and `ignored`.
    pub fn of(log: &Log, range: Range<usize>, known: &[StorageId], ignored: Option<StorageId>) -> Self {
        let mut script = Self {
            allocations: Vec::new(),
            events: Vec::new(),
            storages: known.to_vec(),
            alive: (0..known.len() as u32).collect(),
        };
        for event in &log.events[range] {
            let id = event.storage();
            let allocation = &log.allocations[id as usize];
            // A workspace is allocated by its first use and kept: repeated, it would be allocated each time.
            if Some(id) == ignored || allocation.kind == Kind::Workspace {
                continue;
            }
            if event.is_alloc() {
                script.alive.push(script.storages.len() as u32);
                script.storages.push(id);
                script.allocations.push(*allocation);
            }
            let Some(number) = script.number_of(id) else { continue };
            if !event.is_alloc() {
                script.alive.retain(|&n| n != number);
            }
            script.events.push(event.renamed(number));
        }
        script
    }

    /// Number of a storage of the log.
    pub fn number_of(&self, id: StorageId) -> Option<u32> {
        let at = self.storages.iter().position(|&known| known == id);
        at.map(|at| at as u32)
    }

    /// Bytes of the allocator's block for each number, given the sizes of the known storages.
    pub fn sizes(&self, known: &[u64]) -> Vec<u64> {
        let born = self
            .allocations
            .iter()
            .map(|allocation| allocation.bytes.next_multiple_of(MIN_BLOCK));
        known.iter().copied().chain(born).collect()
    }

    /// Returns true if all new storages belong to the allocator's small pool.
    pub fn is_small(&self) -> bool {
        self.allocations
            .iter()
            .all(|allocation| PoolKind::of(allocation.bytes) == PoolKind::Small)
    }

    /// Change of live bytes over the script.
    pub fn swing(&self, sizes: &[u64]) -> Swing {
        let mut swing = Swing::default();
        for event in &self.events {
            let size = sizes[event.storage() as usize].cast_signed();
            swing.then(if event.is_alloc() {
                Swing { high: size, net: size }
            } else {
                Swing { high: 0, net: -size }
            });
        }
        swing
    }

    /// Returns the script with all new storages as temporaries.
    pub fn of_temporaries(mut self) -> Self {
        for allocation in &mut self.allocations {
            (allocation.kind, allocation.why) = (Kind::Temporary, Why::default());
        }
        self
    }

    /// Adds descriptions of the new storages in the module `scope`; pass the result to [`Self::perform`].
    pub fn describe(&self, log: &mut Log, scope: ScopeId) -> Described {
        Described(
            log.allocations.describe(
                self.allocations
                    .iter()
                    .map(|&allocation| Allocation { scope, ..allocation }),
            ),
        )
    }

    /// Appends the script to the log, with `known` as the known storages.
    pub fn perform(&self, log: &mut Log, described: Described, known: &[StorageId]) -> Cast {
        let first = log.allocations.share(described.0, self.allocations.len() as u32);
        let cast = Cast(first.wrapping_sub(known.len() as u32));
        let events = self.events.iter().map(|e| e.renamed(cast.of(e.storage(), known)));
        log.events.extend(events);
        cast
    }
}

/// Change of live bytes: at its highest, and at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swing {
    pub high: i64,
    pub net: i64,
}

impl Swing {
    /// Appends another change.
    pub fn then(&mut self, next: Self) {
        self.high = self.high.max(self.net + next.high);
        self.net += next.net;
    }
}

/// Position of a script's descriptions in a log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Described(u32);

/// Storages of one performance of a script: the new ones are consecutive from here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cast(StorageId);

impl Cast {
    /// Storage of a number, in a performance with `known`.
    #[inline]
    pub fn of(self, number: u32, known: &[StorageId]) -> StorageId {
        let born = self.0.wrapping_add(number);
        known.get(number as usize).copied().unwrap_or(born)
    }
}
