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

/// Changes are tried once the person pauses.
const PAUSE: Duration = Duration::from_millis(400);

/// The changes that were tried last, in step with the run.
#[derive(Clone, Copy)]
pub struct Trials {
    tried: RwSignal<Vec<Row>>,
    /// While changes are being tried.
    pub progress: RwSignal<Option<Progress>>,
    /// Whether nothing more comes for this run: all is tried, or the person stopped it.
    pub over: RwSignal<bool>,
    pending: Pending,
    engine: Engine,
}

/// One change, beside the run that it would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The entry that it changes.
    pub key: Key,
    /// The change and what it does.
    pub tried: Tried,
    /// The value of that entry in the run that it would change.
    pub now: String,
    /// The entries with it.
    pub entries: Draft,
    /// The phase that holds the peak now.
    pub holder: Phase,
}

impl Row {
    /// What the change saves, for sorting: a change that cannot run saves less than any.
    fn cost(&self) -> i64 {
        self.tried.effect.as_ref().map_or(i64::MAX, |effect| effect.difference)
    }
}

impl Trials {
    /// Tries anew after every run.
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
            // The worker is needed for the new run.
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
                // What was tried for the last setup stays in sight until all is tried for this one.
                if progress.is_complete() {
                    self.tried.set(std::mem::take(&mut rows));
                    self.over.set(true);
                }
                self.progress.set((!progress.is_complete()).then_some(progress));
            });
    }

    /// Tries no further, as the person wishes; what was tried before stays.
    pub fn end(self) {
        self.stop();
        self.over.set(true);
    }

    fn stop(self) {
        self.engine.cancel(Slot::WhatIf);
        self.progress.try_set(None);
        self.pending.stop();
    }

    /// What was tried, by entry; within and among entries what saves most comes first.
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
