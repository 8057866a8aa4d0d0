//! Simulates the entries after every change and publishes the latest result.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::Model;
use vramscope_engine::verdict::Verdict;

use crate::events::{Pending, after};
use crate::models::Models;
use crate::shell::{Prefetch, Store};
use crate::state::{Draft, Key, Reading};
use crate::widgets::is_typing;
use crate::worker::view::{Card, Details, RunView};
use crate::worker::{Answer, Ask, Engine, Refusal, Slot, model};

/// Delay after which pending entries mark the shown figures as outdated.
const PATIENCE: Duration = Duration::from_millis(100);

/// Delay before the last figures disappear when the user types something that cannot be simulated: the first digits of
/// a number are rarely a valid setup.
const REST: Duration = Duration::from_millis(600);

/// Maximum number of remembered runs: a few times the number of single changes to a setup.
const KNOWN: usize = 100;

/// Result of the last entries that were answered.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// No answer yet.
    Waiting,
    /// A finished run.
    Ready(Arc<RunView>),
    /// No run, for this reason.
    Refused(Refusal),
}

/// A run with its details, which are fetched and drawn after its figures are on screen.
#[derive(Debug)]
pub struct Detailed {
    /// The run.
    pub run: Arc<RunView>,
    /// Its details.
    pub details: Box<Details>,
}

/// Model and outcome of the store's current entries.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// Model, as long as it can be read and its family's code is there.
    pub model: Memo<Option<Model>>,
    /// Result of the last entries that were answered.
    pub outcome: RwSignal<Outcome>,
    /// Last run whose details have arrived.
    pub detailed: RwSignal<Option<Arc<Detailed>>>,
    /// True if newer entries have been pending for long.
    pub stale: RwSignal<bool>,
    /// Milliseconds of a step of the run on screen, once they are estimated.
    pub step_ms: RwSignal<Option<f64>>,
    /// Entries that produced the current outcome.
    pub entries: StoredValue<Draft>,
    /// Runs remembered from earlier requests and prefetches, newest last.
    known: StoredValue<Vec<(Draft, Arc<RunView>)>>,
    /// Sequence number of the latest entries.
    asked: StoredValue<u32>,
    /// Sequence number of the entries waiting for an answer.
    waiting: StoredValue<Option<u32>>,
    /// Timer that marks pending entries as late.
    patience: Pending,
    /// Timer that removes the figures of the last valid setup.
    resting: Pending,
}

impl Simulation {
    /// Asks the engine now and after every change of the entries.
    pub fn provide(store: Store) -> Self {
        let reading = store.reading();
        let models = Models::get();
        let read = move |r: &Reading| models.read(&r.source, || model(r))?.ok();
        let simulation = Self::of(Memo::new(move |_| reading.with(read)));
        let engine = Engine::get();
        Effect::new(move || {
            let prefetch = store.prefetch().get();
            simulation.outcome.track();
            // An invalid text changes the reading without changing the outcome.
            reading.track();
            // Paint the current request first: prefetching would compete for the processor.
            after_paint(move || {
                prefetch
                    .iter()
                    .for_each(|prefetch| simulation.ask_prefetch(engine, prefetch))
            });
        });
        on_cleanup(move || {
            engine.cancel(Slot::Prefetch);
            // Its texts are read from controls that go with this page.
            store.prefetch().try_set(None);
        });
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        // Runs immediately, before the other effects of an entry, so that the worker simulates in parallel with them.
        ImmediateEffect::new_scoped(move || {
            let entries = entries.get();
            untrack(|| simulation.follow(engine, entries));
        });
        simulation
    }

    /// One that asks nothing by itself: it is told of a run that was recorded ([`Self::tell`]).
    pub fn provide_recorded() -> Self {
        Self::of(Memo::new(|_| None))
    }

    /// Of a model, with nothing to show yet, for every component below.
    fn of(model: Memo<Option<Model>>) -> Self {
        let simulation = Self {
            model,
            outcome: RwSignal::new(Outcome::Waiting),
            detailed: RwSignal::new(None),
            stale: RwSignal::new(false),
            step_ms: RwSignal::new(None),
            entries: StoredValue::default(),
            known: StoredValue::default(),
            asked: StoredValue::new(0),
            waiting: StoredValue::new(None),
            patience: Pending::new(),
            resting: Pending::new(),
        };
        provide_context(simulation);
        simulation
    }

    /// Shows this run, or why there is none.
    pub fn tell(self, engine: Engine, outcome: Outcome) {
        self.stale.set(false);
        self.outcome.set(outcome);
        after_paint(move || self.ask_details(engine));
    }

    fn follow(self, engine: Engine, entries: Draft) {
        self.asked.update_value(|n| *n += 1);
        let Some(run) = self.known(&entries) else {
            return self.ask(engine, entries);
        };
        // Shows the remembered figures at once. The worker still simulates the entries, since later questions need its
        // kept run, but only after painting, which would compete for the processor.
        engine.cancel(Slot::Run);
        self.waiting.set_value(None);
        self.stale.set(false);
        self.entries.set_value(entries.clone());
        self.outcome.set(Outcome::Ready(run));
        let number = self.asked.get_value();
        after_paint(move || {
            if self.asked.try_get_value() == Some(number) {
                self.ask(engine, entries);
            }
        });
    }

    fn ask(self, engine: Engine, entries: Draft) {
        let number = self.asked.get_value();
        self.waiting.set_value(Some(number));
        engine.ask(Slot::Run, Ask::Run(entries.clone()), move |answer, _| {
            self.waiting.set_value(None);
            self.stale.set(false);
            let Some(Answer::Run(run)) = answer else { return };
            let outcome = Outcome::from(run);
            let entries = entries.clone();
            // A name is no beginning of a number: what is shown for another model would be taken for its.
            let is_of_name = matches!(outcome, Outcome::Refused(Refusal::Model(_))) && !entries.has(Key::Config);
            if matches!(outcome, Outcome::Ready(_)) || is_of_name || !is_typing() {
                return self.end(engine, entries, outcome);
            }
            self.stale.set(true);
            let end = move || {
                if self.asked.try_get_value() == Some(number) {
                    self.end(engine, entries, outcome);
                }
            };
            self.resting.begin(REST, end);
        });
        self.patience.begin(PATIENCE, move || {
            let waits = self.waiting.try_get_value().flatten() == Some(number);
            if waits {
                self.stale.set(true);
            }
        });
    }

    /// Publishes the outcome of these entries.
    fn end(self, engine: Engine, entries: Draft, outcome: Outcome) {
        self.stale.set(false);
        self.entries.set_value(entries.clone());
        if let Outcome::Ready(run) = &outcome {
            self.remember(entries, run.clone());
        }
        self.outcome.set(outcome);
        after_paint(move || self.ask_details(engine));
    }

    /// Prefetches the runs that one click or key press on the focused entry would request.
    fn ask_prefetch(self, engine: Engine, Prefetch { key, texts }: &Prefetch) {
        let outcome = self.outcome.try_get_untracked().unwrap_or(Outcome::Waiting);
        if !key.decides_run() || matches!(outcome, Outcome::Waiting) {
            return;
        }
        // A paint later the page may be left.
        let Some(now) = self.entries.try_get_value() else {
            return;
        };
        let with = |text: String| {
            let mut entries = now.clone();
            entries.set(*key, text);
            entries
        };
        let mut wanted: Vec<Draft> = texts().into_iter().map(with).collect();
        wanted.retain(|entries| self.known(entries).is_none());
        if wanted.is_empty() {
            return engine.cancel(Slot::Prefetch);
        }
        let mut asked = wanted.clone().into_iter();
        engine.ask(Slot::Prefetch, Ask::Prefetch(wanted), move |answer, _| {
            if let (Some(entries), Some(Answer::Prefetch(Some(run)))) = (asked.next(), answer) {
                self.remember(entries, Arc::from(run));
            }
        });
    }

    /// Remembers the run of these entries and drops the oldest one if needed.
    pub fn remember(self, entries: Draft, run: Arc<RunView>) {
        self.known.update_value(|known| {
            known.retain(|(of, _)| *of != entries);
            if known.len() == KNOWN {
                known.remove(0);
            }
            known.push((entries, run));
        });
    }

    /// Returns the remembered run of these entries; simulation is deterministic, so it is still valid.
    fn known(self, entries: &Draft) -> Option<Arc<RunView>> {
        self.known.with_value(|known| {
            let found = known.iter().find(|(of, _)| of == entries);
            found.map(|(_, run)| run.clone())
        })
    }

    fn ask_details(self, engine: Engine) {
        let Some(Outcome::Ready(run)) = self.outcome.try_get_untracked() else {
            return;
        };
        engine.ask(Slot::Details, Ask::Details { run: run.id }, move |answer, _| {
            if let Some(Answer::Details(details)) = answer {
                let run = run.clone();
                self.detailed.try_set(Some(Arc::new(Detailed { run, details })));
            }
        });
    }

    /// Returns the simulation that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Returns the current run; reactive.
    pub fn run(self) -> Option<Arc<RunView>> {
        match self.outcome.get() {
            Outcome::Ready(run) => Some(run),
            _ => None,
        }
    }

    /// Derives a text from the current run, empty if there is none. An unchanged text causes no update of the page.
    pub fn text(self, words: impl Fn(&RunView) -> String + Send + Sync + 'static) -> Signal<String> {
        Signal::derive(move || match self.outcome.get() {
            Outcome::Ready(run) => words(&run),
            _ => String::new(),
        })
    }

    /// Id under which the host keeps the current run.
    pub fn id(self) -> Option<u32> {
        self.outcome.with(|outcome| match outcome {
            Outcome::Ready(run) => Some(run.id),
            _ => None,
        })
    }

    /// Returns the card of the current run, or the reason why there is none.
    pub fn card(self) -> Option<Result<Card, String>> {
        self.outcome.with(|outcome| match outcome {
            Outcome::Ready(run) => Some(run.card.clone()),
            _ => None,
        })
    }

    /// Class of a verdict's colour, as far as the current run is the whole run that was given.
    pub fn colour(self, verdict: Verdict) -> &'static str {
        let card = self.card().and_then(Result::ok);
        card.map_or("verdict-partial", |card| card.colour(verdict))
    }
}

/// Runs `f` after the browser's next paint, or at once if the page is hidden and nothing is painted.
fn after_paint(f: impl FnOnce() + 'static) {
    if document().hidden() {
        return f();
    }
    request_animation_frame(move || after(Duration::ZERO, f));
}

impl From<Result<Box<RunView>, Refusal>> for Outcome {
    fn from(run: Result<Box<RunView>, Refusal>) -> Self {
        match run {
            Ok(run) => Self::Ready(Arc::from(run)),
            Err(why) => Self::Refused(why),
        }
    }
}
