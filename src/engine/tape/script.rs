//! What an operation writes down, kept to be written down again for others of the same size.

use std::ops::Range;

use super::kind::Kind;
use super::log::{Birth, Event, Log, ScopeId, StorageId};
use super::why::Why;

/// Births and deaths among memory that is numbered from 0: first what is known before, then what is
/// born, in order.
#[derive(Default)]
pub(super) struct Script {
    births: Vec<Birth>,
    events: Vec<Event>,
    /// What each number was in the log.
    pub storages: Vec<StorageId>,
    /// Numbers of what lives on.
    pub alive: Vec<usize>,
}

impl Script {
    /// The part `range` of a log. Memory that is neither `known` nor born in it is left out, and so are
    /// library workspaces and `ignored`.
    pub fn of(log: &Log, range: Range<usize>, known: &[StorageId], ignored: Option<StorageId>) -> Self {
        let mut script = Self {
            births: Vec::new(),
            events: Vec::new(),
            storages: known.to_vec(),
            alive: (0..known.len()).collect(),
        };
        for event in &log.events[range] {
            let id = event.storage();
            let birth = &log.births[id as usize];
            if Some(id) == ignored || birth.kind == Kind::Workspace {
                continue;
            }
            if event.is_birth() {
                script.alive.push(script.storages.len());
                script.storages.push(id);
                script.births.push(*birth);
            }
            let Some(number) = script.number_of(id) else { continue };
            if !event.is_birth() {
                script.alive.retain(|&n| n != number);
            }
            script.events.push(event.renamed(number as StorageId));
        }
        script
    }

    /// The number of a storage of the log.
    pub fn number_of(&self, id: StorageId) -> Option<usize> {
        self.storages.iter().position(|&known| known == id)
    }

    /// The same births as temporaries.
    pub fn of_temporaries(mut self) -> Self {
        for birth in &mut self.births {
            (birth.kind, birth.why) = (Kind::Temporary, Why::default());
        }
        self
    }

    /// Writes it down; `ids` holds what is known, and what is born is added.
    pub fn perform(&self, log: &mut Log, scope: ScopeId, ids: &mut Vec<StorageId>) {
        let mut births = self.births.iter();
        for event in &self.events {
            if event.is_birth() {
                let birth = births.next().map(|&birth| Birth { scope, ..birth });
                ids.extend(birth.map(|birth| log.born(birth)));
            } else if let Some(&id) = ids.get(event.storage() as usize) {
                log.events.push(Event::death(id));
            }
        }
    }
}
