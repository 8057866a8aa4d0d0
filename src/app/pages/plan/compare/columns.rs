//! Columns of the comparison.

use leptos::prelude::*;

use crate::i18n::{Words, t_string};
use crate::pages::plan::pin::pins;
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::Draft;
use crate::worker::view::Summary;
use crate::worker::{Answer, Ask, Engine, Refusal, Slot};

/// Result of a setup; `None` while it is being simulated.
pub type Found = Option<Result<Summary, Refusal>>;

/// A setup of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Index among the pinned setups; `None` for the current one.
    pub pin: Option<usize>,
    /// Entries that affect its run.
    pub entries: Draft,
    /// Result of its simulation.
    pub found: Found,
}

/// Columns of the comparison, updated with store and run.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Pinned setups in order, then the current one; empty if nothing is pinned.
    pub all: Memo<Vec<Column>>,
}

impl Column {
    /// Returns `A`, `B`, … for pinned setups, and the word for the current one.
    pub fn name(&self, i18n: Words) -> String {
        match self.pin {
            Some(i) => letter(i),
            None => t_string!(i18n, compare.now).to_string(),
        }
    }

    /// Figures of the run, if it succeeded.
    pub fn summary(&self) -> Option<&Summary> {
        self.found.as_ref()?.as_ref().ok()
    }
}

/// Letter of a pinned setup.
pub fn letter(i: usize) -> String {
    char::from(b'A' + i as u8).to_string()
}

impl Columns {
    /// Simulates the pinned setups whenever they change; the current one is simulated anyway.
    pub fn follow() -> Self {
        let (store, simulation, engine) = (Store::get(), Simulation::get(), Engine::get());
        let pins = pins(store);
        let found = RwSignal::new(Vec::<Found>::new());
        Effect::new(move || {
            let setups = pins.get().all().to_vec();
            found.set(vec![None; setups.len()]);
            if setups.is_empty() {
                return engine.cancel(Slot::Setups);
            }
            engine.ask(Slot::Setups, Ask::Setups(setups), move |answer, progress| {
                let Some(Answer::Setup(setup)) = answer else { return };
                found.update(|found| {
                    if let Some(place) = found.get_mut(progress.done as usize - 1) {
                        *place = Some(setup.map(|summary| *summary));
                    }
                });
            });
        });
        on_cleanup(move || engine.cancel(Slot::Setups));
        let all = Memo::new(move |_| {
            let pins = pins.get();
            if pins.all().is_empty() {
                return Vec::new();
            }
            let found = found.get();
            let pinned = pins.all().iter().enumerate().map(|(i, entries)| Column {
                pin: Some(i),
                entries: entries.clone(),
                found: found.get(i).cloned().flatten(),
            });
            pinned.chain([editor(simulation)]).collect()
        });
        Self { all }
    }
}

fn editor(simulation: Simulation) -> Column {
    let found = match simulation.outcome.get() {
        Outcome::Waiting => None,
        Outcome::Ready(run) => Some(Ok(Summary::from(&*run))),
        Outcome::Refused(why) => Some(Err(why)),
    };
    Column {
        pin: None,
        entries: simulation.entries.get_value(),
        found,
    }
}
