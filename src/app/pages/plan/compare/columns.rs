use leptos::prelude::*;

use crate::i18n::{Words, t_string};
use crate::pages::plan::pin::pins;
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::Draft;
use crate::worker::view::Summary;
use crate::worker::{Answer, Ask, Engine, Refusal, Slot};

/// What came of a setup; `None` while it is being simulated.
pub type Found = Option<Result<Summary, Refusal>>;

/// One setup.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its place among the pinned ones; the editor's has none.
    pub pin: Option<usize>,
    /// What decides its run.
    pub entries: Draft,
    /// What came of it.
    pub found: Found,
}

/// The setups side by side, in step with store and run.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Pinned setups in order, then the editor's. Empty while nothing is pinned.
    pub all: Memo<Vec<Column>>,
}

impl Column {
    /// `A`, `B`, … for pinned setups.
    pub fn name(&self, i18n: Words) -> String {
        match self.pin {
            Some(i) => letter(i),
            None => t_string!(i18n, compare.now).to_string(),
        }
    }

    /// What came of it, if it runs.
    pub fn summary(&self) -> Option<&Summary> {
        self.found.as_ref()?.as_ref().ok()
    }
}

/// The name of a pinned setup.
pub fn letter(i: usize) -> String {
    char::from(b'A' + i as u8).to_string()
}

impl Columns {
    /// Simulates pinned setups when they change; the editor's is simulated anyway.
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
