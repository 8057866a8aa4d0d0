//! Tries single changes to the current setup.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::report::Phase;
use vramscope_plan::Tried;

use crate::events::Pending;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Draft, Key, Reading};
use crate::worker::{Answer, Ask, Engine, Progress, Slot, Tested};

/// Delay after the last entry before changes are tried.
const PAUSE: Duration = Duration::from_millis(400);

/// Results of the latest changes tried.
#[derive(Clone, Copy)]
pub struct Trials {
    tried: RwSignal<Vec<Row>>,
    /// Progress; `None` if nothing is being tried.
    pub progress: RwSignal<Option<Progress>>,
    /// True once nothing more follows for this run: all changes are tried, or the user stopped.
    pub over: RwSignal<bool>,
    pending: Pending,
    engine: Engine,
}

/// A change and the run that it applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Key of the entry to change.
    pub key: Key,
    /// Change and effect.
    pub tried: Tried,
    /// Value of the entry before the change.
    pub now: String,
    /// Entries after the change.
    pub entries: Draft,
    /// Phase that holds the peak before the change.
    pub holder: Phase,
}

impl Row {
    /// Sort key: the memory difference; a change that cannot run sorts last.
    fn cost(&self) -> i64 {
        self.tried.effect.as_ref().map_or(i64::MAX, |effect| effect.difference)
    }
}

impl Trials {
    /// Tries the changes again after each run.
    pub fn follow() -> Self {
        let simulation = Simulation::get();
        let trials = Self {
            tried: RwSignal::default(),
            progress: RwSignal::new(None),
            over: RwSignal::new(false),
            pending: Pending::new(),
            engine: Engine::get(),
        };
        let reading = Store::get().reading();
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        Effect::new(move || {
            // Frees the worker for the new run.
            entries.track();
            trials.stop();
        });
        Effect::new(move || {
            simulation.outcome.track();
            trials.again(simulation);
        });
        on_cleanup(move || trials.stop());
        trials
    }

    fn again(self, simulation: Simulation) {
        self.stop();
        self.over.set(false);
        let later = move || untrack(|| self.ask(simulation));
        self.pending.begin(PAUSE, later);
    }

    fn ask(self, simulation: Simulation) {
        let Some(run) = simulation.run() else { return };
        let (now, holder) = (run.figures.now(), run.figures.peak_phase);
        let entries = simulation.entries.get_value();
        let mut rows = Vec::new();
        let base = entries.clone();
        self.progress.set(Some(Progress::default()));
        self.engine
            .ask(Slot::WhatIf, Ask::WhatIf { entries, now }, move |answer, progress| {
                if let Some(Answer::Tried(tested)) = answer {
                    let Tested { tried, run } = *tested;
                    let key = Key::named(tried.change.key());
                    rows.extend(key.map(|key| {
                        let mut entries = base.clone();
                        entries.set(key, tried.change.value());
                        if let Some(run) = run {
                            simulation.remember(entries.clone(), Arc::new(run));
                        }
                        Row {
                            key,
                            tried,
                            now: base.get(key).to_owned(),
                            entries,
                            holder,
                        }
                    }));
                }
                // Earlier results stay on screen until all changes are tried for the new setup.
                if progress.is_complete() {
                    self.tried.set(std::mem::take(&mut rows));
                    self.over.set(true);
                }
                self.progress.set((!progress.is_complete()).then_some(progress));
            });
    }

    /// Stops on the user's request; earlier results stay.
    pub fn end(self) {
        self.stop();
        self.over.set(true);
    }

    fn stop(self) {
        self.engine.cancel(Slot::WhatIf);
        self.progress.try_set(None);
        self.pending.stop();
    }

    /// Results grouped by entry; groups and rows with the largest saving come first.
    pub fn groups(self) -> Vec<(Key, Vec<Row>)> {
        let mut groups: Vec<(Key, Vec<Row>)> = Vec::new();
        for row in self.tried.get() {
            match groups.iter_mut().find(|(key, _)| *key == row.key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((row.key, vec![row])),
            }
        }
        for (_, rows) in &mut groups {
            sort_by_key(rows, Row::cost);
        }
        sort_by_key(&mut groups, |(_, rows)| rows.first().map_or(i64::MAX, Row::cost));
        groups
    }
}
