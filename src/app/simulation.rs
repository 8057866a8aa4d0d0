//! From what was entered to what is shown, in step: every entry asks the engine, the last answer stays.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::Model;

use crate::events::{Pending, after};
use crate::shell::{Near, Store};
use crate::state::{Draft, Reading};
use crate::widgets::is_typing;
use crate::worker::view::{Card, Details, Run};
use crate::worker::{Answer, Ask, Engine, Refusal, Slot, model};

/// A figure that is older than this is marked so.
const PATIENCE: Duration = Duration::from_millis(100);

/// So long what somebody types stands before the figures of the last setup go, where it cannot be simulated: the first
/// digits of a number are mostly no setup yet.
const REST: Duration = Duration::from_millis(600);

/// So many runs are remembered: a few times the single changes of a setup.
const KNOWN: usize = 100;

/// What came of the last entry that was answered.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Nothing yet.
    Waiting,
    /// A run.
    Ready(Arc<Run>),
    /// There is none.
    Refused(Refusal),
}

/// A run with its details, which come and are drawn once its figures are on screen.
#[derive(Debug)]
pub struct Detailed {
    /// The run.
    pub run: Arc<Run>,
    /// Its details.
    pub details: Box<Details>,
}

/// Model and outcome, in step with the store.
#[derive(Debug, Clone, Copy)]
pub struct Simulation {
    /// The model, while it can be read.
    pub model: Memo<Option<Model>>,
    /// What came of the last entry that was answered.
    pub outcome: RwSignal<Outcome>,
    /// The last run whose details have come.
    pub detailed: RwSignal<Option<Arc<Detailed>>>,
    /// Whether newer entries have waited for long.
    pub stale: RwSignal<bool>,
    /// The entries of that outcome.
    pub entries: StoredValue<Draft>,
    /// Runs of entries that were tried or shown before, the latest last.
    known: StoredValue<Vec<(Draft, Arc<Run>)>>,
    /// The number of the latest entries.
    asked: StoredValue<u32>,
    /// Entries that wait for an answer have this number.
    waiting: StoredValue<Option<u32>>,
    /// Until what waits is marked as late.
    patience: Pending,
    /// Until the figures of the last setup go.
    resting: Pending,
}

impl Simulation {
    /// Asks the engine now, and again at every entry.
    pub fn provide(store: Store) -> Self {
        let reading = store.reading();
        let simulation = Self::of(Memo::new(move |_| reading.with(|r| model(r).ok())));
        let engine = Engine::get();
        Effect::new(move || {
            let near = store.near().get();
            simulation.outcome.track();
            // A text that is not right yet has no outcome of its own.
            reading.track();
            // What is asked for now is painted first, which takes the processor too.
            after_paint(move || near.iter().for_each(|near| simulation.ask_near(engine, near)));
        });
        on_cleanup(move || engine.cancel(Slot::Near));
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        // At once, not in turn with the other effects of an entry: the worker simulates while they run.
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
        // Its figures stand there while the worker simulates it again, for all that is asked about it afterwards:
        // once they are painted, which takes the processor too.
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
            if matches!(outcome, Outcome::Ready(_)) || !is_typing() {
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

    /// This came of these entries.
    fn end(self, engine: Engine, entries: Draft, outcome: Outcome) {
        self.stale.set(false);
        self.entries.set_value(entries.clone());
        if let Outcome::Ready(run) = &outcome {
            self.remember(entries, run.clone());
        }
        self.outcome.set(outcome);
        after_paint(move || self.ask_details(engine));
    }

    /// Has the runs ready that one press on an entry, or one key in it, asks for.
    fn ask_near(self, engine: Engine, Near { key, texts }: &Near) {
        let outcome = self.outcome.try_get_untracked().unwrap_or(Outcome::Waiting);
        if !key.decides_run() || matches!(outcome, Outcome::Waiting) {
            return;
        }
        let with = |text: String| {
            let mut entries = self.entries.get_value();
            entries.set(*key, text);
            entries
        };
        let mut wanted: Vec<Draft> = texts().into_iter().map(with).collect();
        wanted.retain(|entries| self.known(entries).is_none());
        if wanted.is_empty() {
            return engine.cancel(Slot::Near);
        }
        let mut asked = wanted.clone().into_iter();
        engine.ask(Slot::Near, Ask::Near(wanted), move |answer, _| {
            if let (Some(entries), Some(Answer::Near(Some(run)))) = (asked.next(), answer) {
                self.remember(entries, Arc::from(run));
            }
        });
    }

    /// Remembers the run of these entries; the oldest one is forgotten.
    pub fn remember(self, entries: Draft, run: Arc<Run>) {
        self.known.update_value(|known| {
            known.retain(|(of, _)| *of != entries);
            if known.len() == KNOWN {
                known.remove(0);
            }
            known.push((entries, run));
        });
    }

    /// The run of these entries, if it was simulated before: the engine gives the same again.
    fn known(self, entries: &Draft) -> Option<Arc<Run>> {
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

    /// The simulation that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The run, while there is one.
    pub fn run(self) -> Option<Arc<Run>> {
        match self.outcome.get() {
            Outcome::Ready(run) => Some(run),
            _ => None,
        }
    }

    /// A text about the run, in step with it; empty while there is none. Where it stays the same, nothing on the
    /// page is touched.
    pub fn text(self, words: impl Fn(&Run) -> String + Send + Sync + 'static) -> Signal<String> {
        Signal::derive(move || match self.outcome.get() {
            Outcome::Ready(run) => words(&run),
            _ => String::new(),
        })
    }

    /// What the host keeps of what was simulated has this number.
    pub fn id(self) -> Option<u32> {
        self.outcome.with(|outcome| match outcome {
            Outcome::Ready(run) => Some(run.id),
            _ => None,
        })
    }

    /// The card of what was simulated, or why there is none.
    pub fn card(self) -> Option<Result<Card, String>> {
        self.outcome.with(|outcome| match outcome {
            Outcome::Ready(run) => Some(run.card.clone()),
            _ => None,
        })
    }
}

/// Runs `f` once the browser has painted what was changed before; at once, where it paints nothing.
fn after_paint(f: impl FnOnce() + 'static) {
    if document().hidden() {
        return f();
    }
    request_animation_frame(move || after(Duration::ZERO, f));
}

impl From<Result<Box<Run>, Refusal>> for Outcome {
    fn from(run: Result<Box<Run>, Refusal>) -> Self {
        match run {
            Ok(run) => Self::Ready(Arc::from(run)),
            Err(why) => Self::Refused(why),
        }
    }
}
