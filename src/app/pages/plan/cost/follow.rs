//! Asks for the costs again whenever the run or the prices change.

use std::time::Duration;

use leptos::prelude::*;
use vramscope_plan::cost::{CostRow, RankBy, rank};

use super::list::PriceList;
use crate::events::Pending;
use crate::shell::{MyCard, Store};
use crate::simulation::Simulation;
use crate::state::{Key, Reading};
use crate::worker::{Answer, Ask, Engine, Progress, Slot};

/// Delay after a change before the simulations begin, which would delay the run's own.
const PAUSE: Duration = Duration::from_millis(400);

/// Rows of the current run.
#[derive(Clone, Copy)]
pub struct Following {
    /// Rows known so far, in no order.
    pub rows: RwSignal<Vec<CostRow>>,
    /// Order in which they are shown.
    pub by: RwSignal<RankBy>,
    /// How far the simulations are.
    pub progress: RwSignal<Progress>,
    /// True while rows of the current run are missing.
    pub is_waiting: RwSignal<bool>,
    pending: Pending,
    engine: Engine,
}

impl Following {
    /// Starts after each run and each change of a price; a change of the entries stops it.
    pub fn start(list: PriceList) -> Self {
        let (simulation, store, mine) = (Simulation::get(), Store::get(), MyCard::get());
        let following = Self {
            rows: RwSignal::default(),
            by: RwSignal::default(),
            progress: RwSignal::default(),
            is_waiting: RwSignal::new(true),
            pending: Pending::new(),
            engine: Engine::get(),
        };
        let asked = Memo::new(move |_| {
            let mut entries = store.reading().with(Reading::entries);
            entries.set(
                Key::Samples,
                store
                    .reading()
                    .with(|reading| reading.good.get(Key::Samples).to_owned()),
            );
            entries
        });
        Effect::new(move || {
            simulation.outcome.track();
            let (entries, prices) = (asked.get(), list.prices.get());
            let card = mine.kernels().map(|text| text.to_string());
            following.stop();
            let ask = Ask::Cost {
                entries,
                prices: prices.to_json(),
                card,
            };
            following.pending.begin(PAUSE, move || following.ask(ask));
        });
        on_cleanup(move || following.stop());
        following
    }

    /// Rows in the order asked for; reactive.
    pub fn ranked(self) -> Vec<CostRow> {
        let mut rows = self.rows.get();
        rank(&mut rows, self.by.get());
        rows
    }

    fn ask(self, ask: Ask) {
        let mut fresh = Vec::new();
        self.engine.ask(Slot::Cost, ask, move |answer, progress| {
            if let Some(Answer::Cost(row)) = answer {
                fresh.extend(row.open());
            }
            // Rows of the run before stay until these are all known, so that the table does not jump at each of them.
            let is_complete = progress.is_complete();
            let is_first = self.rows.with_untracked(Vec::is_empty);
            if is_complete || is_first && fresh.len().is_multiple_of(FIRST) {
                self.rows.try_set(fresh.clone());
            }
            self.progress.try_set(progress);
            self.is_waiting.try_set(!is_complete);
        });
    }

    fn stop(self) {
        self.engine.cancel(Slot::Cost);
        self.is_waiting.try_set(true);
        self.pending.stop();
    }
}

/// Number of first rows that are drawn before all are known.
const FIRST: usize = 4;
