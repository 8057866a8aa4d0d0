//! Tries single changes to the current run.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::report::Phase;
use vramscope_engine::setup::Setting;
use vramscope_plan::Tried;

use crate::events::Pending;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Draft, Key, Reading};
use crate::worker::{Answer, Ask, Engine, Progress, Slot, Tested};

/// Delay after the last entry before changes are tried.
const PAUSE: Duration = Duration::from_millis(400);

/// Question about all changes to a run, and the row that each answer becomes.
pub type Question<R> = (Ask, Box<dyn FnMut(Answer) -> Option<R>>);

/// Makes the question about the run on screen; `None` if there is none.
type Asking<R> = Arc<dyn Fn() -> Option<Question<R>> + Send + Sync>;

/// Results of the latest changes tried.
pub struct Trials<R: Send + Sync + 'static> {
    tried: RwSignal<Vec<R>>,
    /// Progress; `None` if nothing is being tried.
    pub progress: RwSignal<Option<Progress>>,
    /// True once nothing more follows for this run: all changes are tried, or the user stopped.
    pub over: RwSignal<bool>,
    /// True while the pointer or the focus is on the list, whose order then stays.
    pub is_held: RwSignal<bool>,
    /// Names of the rows on screen, in their order.
    order: StoredValue<Vec<String>>,
    pending: Pending,
    engine: Engine,
}

impl<R: Send + Sync> Clone for Trials<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Send + Sync> Copy for Trials<R> {}

impl<R: Clone + Send + Sync> Trials<R> {
    /// Tries the changes again after each run; a change of the entries stops them.
    pub fn follow(entries: Memo<Draft>, question: impl Fn() -> Option<Question<R>> + Send + Sync + 'static) -> Self {
        let simulation = Simulation::get();
        let trials = Self {
            tried: RwSignal::default(),
            progress: RwSignal::new(None),
            over: RwSignal::new(false),
            is_held: RwSignal::new(false),
            order: StoredValue::default(),
            pending: Pending::new(),
            engine: Engine::get(),
        };
        Effect::new(move || {
            // Frees the worker for the new run.
            entries.track();
            trials.stop();
        });
        let question: Asking<R> = Arc::new(question);
        Effect::new(move || {
            simulation.outcome.track();
            trials.again(question.clone());
        });
        on_cleanup(move || trials.stop());
        trials
    }

    fn again(self, question: Asking<R>) {
        self.stop();
        self.over.set(false);
        let later = move || untrack(|| self.ask(question()));
        self.pending.begin(PAUSE, later);
    }

    fn ask(self, question: Option<Question<R>>) {
        let Some((ask, mut row)) = question else { return };
        let mut rows = Vec::new();
        self.progress.set(Some(Progress::default()));
        self.engine.ask(Slot::WhatIf, ask, move |answer, progress| {
            rows.extend(answer.and_then(&mut row));
            // Earlier results stay on screen until all changes are tried for the new run.
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

    /// Results in groups of equal keys; groups and rows with the largest saving come first. Under the pointer all stay
    /// where they are: a row that replaces another, as what undoes a change does, takes its place.
    pub fn groups<K: PartialEq>(
        self,
        key: impl Fn(&R) -> K,
        cost: impl Fn(&R) -> i64,
        name: impl Fn(&R) -> String,
    ) -> Vec<(K, Vec<R>)> {
        let mut rows = self.tried.get();
        // Read without being followed: a list that is left is sorted with the next results.
        let is_held = self.is_held.get_untracked();
        let names: Vec<String> = rows.iter().map(&name).collect();
        let places = self.order.with_value(|order| places(order, &names));
        let kept = is_held && !places.is_empty();
        if kept {
            let mut placed: Vec<(usize, R)> = places.into_iter().zip(rows).collect();
            sort_by_key(&mut placed, |(place, _)| *place);
            rows = placed.into_iter().map(|(_, row)| row).collect();
        }
        let mut groups: Vec<(K, Vec<R>)> = Vec::new();
        for row in rows {
            let key = key(&row);
            match groups.iter_mut().find(|(known, _)| *known == key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        if !kept {
            for (_, rows) in &mut groups {
                sort_by_key(rows, &cost);
            }
            sort_by_key(&mut groups, |(_, rows)| rows.first().map_or(i64::MAX, &cost));
        }
        let shown = groups.iter().flat_map(|(_, rows)| rows).map(name);
        self.order.set_value(shown.collect());
        groups
    }
}

/// Place of each row in the order on screen. Rows that are new take the places of rows of their entry that are gone, or
/// come last; none if nothing is on screen.
fn places(order: &[String], names: &[String]) -> Vec<usize> {
    if order.is_empty() {
        return Vec::new();
    }
    let entry = |name: &str| name.split('=').next().unwrap_or_default().to_owned();
    let mut gone: Vec<usize> = (0..order.len())
        .filter(|place| !names.contains(&order[*place]))
        .collect();
    let place = |name: &String| {
        if let Some(place) = order.iter().position(|known| known == name) {
            return place;
        }
        let of_entry = gone.iter().position(|place| entry(&order[*place]) == entry(name));
        of_entry.map_or(usize::MAX, |at| gone.remove(at))
    };
    names.iter().map(place).collect()
}

/// A change to a setup, and the run that it applies to.
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
    /// Entry and value, such as `ckpt=full`.
    pub fn name(&self) -> String {
        format!("{}={}", self.key.name(), self.tried.change.text())
    }

    /// Returns true if the change may well work, and is only not simulated.
    pub fn is_unsimulated(&self) -> bool {
        self.tried.effect.as_ref().is_err_and(|why| why.is_only_unsimulated())
    }

    /// Sort key: the memory difference; a change that cannot run sorts last.
    pub fn cost(&self) -> i64 {
        self.tried.effect.as_ref().map_or(i64::MAX, |effect| effect.difference)
    }
}

/// Tries the changes to the page's setup.
pub fn of_setup() -> Trials<Row> {
    let simulation = Simulation::get();
    let reading = Store::get().reading();
    let entries = Memo::new(move |_| reading.with(Reading::entries));
    Trials::follow(entries, move || {
        let run = simulation.run()?;
        let (now, holder) = (run.figures.now(), run.figures.peak_phase);
        let base = simulation.entries.get_value();
        let entries = base.clone();
        let mut applies = base.clone();
        applies.set(Setting::Seq, run.inputs.seq.to_string());
        let row = move |answer| {
            let Answer::Tried(tested) = answer else { return None };
            let Tested { tried, run } = *tested;
            let key = Key::Setting(tried.change.setting());
            let mut entries = base.clone();
            entries.set(key, tried.change.text());
            if let Some(run) = run {
                simulation.remember(entries.clone(), Arc::new(run));
            }
            Some(Row {
                key,
                tried,
                now: applies.get(key).to_owned(),
                entries,
                holder,
            })
        };
        Some((Ask::WhatIf { entries, now }, Box::new(row)))
    })
}
