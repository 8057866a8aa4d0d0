//! What an operation writes down, kept to be written down again for others of the same size.

use std::ops::Range;

use super::kind::Kind;
use super::log::{Birth, Event, Log, ScopeId, StorageId};
use super::why::Why;
use crate::allocator::{MIN_BLOCK, PoolKind};

/// Births and deaths among memory that is numbered from 0: first what is known before, then what is
/// born, in order.
#[derive(Default)]
pub(super) struct Script {
    births: Vec<Birth>,
    events: Vec<Event>,
    /// What each number was in the log.
    pub storages: Vec<StorageId>,
    /// Numbers of what lives on.
    pub alive: Vec<u32>,
}

impl Script {
    /// The part `range` of a log. Memory that is neither `known` nor born in it is left out, and so are
    /// library workspaces and `ignored`.
    pub fn of(log: &Log, range: Range<usize>, known: &[StorageId], ignored: Option<StorageId>) -> Self {
        let mut script = Self {
            births: Vec::new(),
            events: Vec::new(),
            storages: known.to_vec(),
            alive: (0..known.len() as u32).collect(),
        };
        for event in &log.events[range] {
            let id = event.storage();
            let birth = &log.births[id as usize];
            if Some(id) == ignored || birth.kind == Kind::Workspace {
                continue;
            }
            if event.is_birth() {
                script.alive.push(script.storages.len() as u32);
                script.storages.push(id);
                script.births.push(*birth);
            }
            let Some(number) = script.number_of(id) else { continue };
            if !event.is_birth() {
                script.alive.retain(|&n| n != number);
            }
            script.events.push(event.renamed(number));
        }
        script
    }

    /// The number of a storage of the log.
    pub fn number_of(&self, id: StorageId) -> Option<u32> {
        let at = self.storages.iter().position(|&known| known == id);
        at.map(|at| at as u32)
    }

    /// Bytes of each number in blocks of the allocator, of a performance that knows memory of these sizes.
    pub fn sizes(&self, known: &[u64]) -> Vec<u64> {
        let born = self.births.iter().map(|birth| birth.bytes.next_multiple_of(MIN_BLOCK));
        known.iter().copied().chain(born).collect()
    }

    /// Whether everything that is born lies in the allocator's small pool.
    pub fn is_small(&self) -> bool {
        self.births
            .iter()
            .all(|birth| PoolKind::of(birth.bytes) == PoolKind::Small)
    }

    /// How live bytes move while it is performed.
    pub fn swing(&self, sizes: &[u64]) -> Swing {
        let mut swing = Swing::default();
        for event in &self.events {
            let size = sizes[event.storage() as usize].cast_signed();
            swing.then(if event.is_birth() {
                Swing { high: size, net: size }
            } else {
                Swing { high: 0, net: -size }
            });
        }
        swing
    }

    /// The same births as temporaries.
    pub fn of_temporaries(mut self) -> Self {
        for birth in &mut self.births {
            (birth.kind, birth.why) = (Kind::Temporary, Why::default());
        }
        self
    }

    /// Describes what it gives birth to in the module `scope`; the answer is for [`Self::perform`].
    pub fn describe(&self, log: &mut Log, scope: ScopeId) -> Described {
        Described(
            log.births
                .describe(self.births.iter().map(|&birth| Birth { scope, ..birth })),
        )
    }

    /// Writes it down, with `known` as what it knows.
    pub fn perform(&self, log: &mut Log, described: Described, known: &[StorageId]) -> Cast {
        let first = log.births.share(described.0, self.births.len() as u32);
        let cast = Cast(first.wrapping_sub(known.len() as u32));
        let events = self.events.iter().map(|e| e.renamed(cast.of(e.storage(), known)));
        log.events.extend(events);
        cast
    }
}

/// How live bytes move: what comes on top at the highest, and at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swing {
    pub high: i64,
    pub net: i64,
}

impl Swing {
    /// Another movement follows.
    pub fn then(&mut self, next: Self) {
        self.high = self.high.max(self.net + next.high);
        self.net += next.net;
    }
}

/// Where a log describes what a script gives birth to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Described(u32);

/// Which storages play the numbers of a script: those that are born follow one another from here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cast(StorageId);

impl Cast {
    /// The storage of a number, of a performance that knew `known`.
    #[inline]
    pub fn of(self, number: u32, known: &[StorageId]) -> StorageId {
        let born = self.0.wrapping_add(number);
        known.get(number as usize).copied().unwrap_or(born)
    }
}
