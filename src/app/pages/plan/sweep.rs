use std::time::Duration;

use leptos::prelude::*;
use vramscope_plan::{Axis, Point};

use super::largest_batch::LargestBatchCard;
use super::sweep_cards::{CardChips, LargestTable};
use super::sweep_chart::{SweepChart, figure};
use crate::charts::ChartFrame;
use crate::events::Pending;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Draft, Key, Reading};
use crate::widgets::Select;
use crate::worker::protocol::{Largest, Progress};
use crate::worker::sweep::axis;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Entries must rest so long before a sweep begins: its simulations would delay the run's own.
const REST: Duration = Duration::from_millis(600);

/// A sweep as far as it has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// The entry that was varied.
    pub axis: Option<Axis>,
    /// Simulated values, in rising order.
    pub points: Vec<Point>,
    /// The largest value of each card.
    pub largest: Vec<Largest>,
}

impl Swept {
    /// The entries of one value, on the chosen card or another.
    pub fn entries_at(&self, entries: &Draft, value: u64, card: Option<&str>) -> Option<Draft> {
        let mut entries = entries.clone();
        entries.set(Key::named(self.axis?.name())?, value.to_string());
        if let Some(card) = card.filter(|card| *card != entries.get(Key::Gpu)) {
            entries.set(Key::Gpu, card);
            // A limit is of the chosen card.
            entries.set(Key::LimitGib, "");
        }
        Some(entries)
    }
}

/// The sweep of the page.
#[derive(Clone, Copy)]
pub struct SweepState {
    /// What is shown: the last sweep that ended, or the first one as it goes.
    pub shown: RwSignal<Swept>,
    /// How far the sweep that runs has come.
    pub progress: RwSignal<Option<Progress>>,
    /// Whether the person stopped it.
    pub stopped: RwSignal<bool>,
    engine: Engine,
    resting: Pending,
    number: StoredValue<u32>,
}

impl SweepState {
    fn new() -> Self {
        let engine = Engine::get();
        on_cleanup(move || engine.cancel(Slot::Sweep));
        Self {
            shown: RwSignal::default(),
            progress: RwSignal::new(None),
            stopped: RwSignal::new(false),
            engine,
            resting: Pending::new(),
            number: StoredValue::new(0),
        }
    }

    /// Begins anew once the entries have rested; what was asked before is dropped.
    fn ask(self, axis: Option<Axis>, entries: Draft) {
        self.cancel();
        self.stopped.set(false);
        let number = self.number.get_value();
        self.resting.begin(REST, move || {
            if self.number.try_get_value() == Some(number) {
                self.begin(axis, entries);
            }
        });
    }

    fn begin(self, axis: Option<Axis>, entries: Draft) {
        let mut fresh = Swept {
            axis,
            ..Swept::default()
        };
        self.progress.set(Some(Progress::default()));
        self.engine
            .ask(Slot::Sweep, Ask::Sweep(entries), move |answer, progress| {
                match answer {
                    Some(Answer::Point(point)) => fresh.points.extend(point.open()),
                    Some(Answer::Largest(largest)) => fresh.largest.extend(largest.open()),
                    _ => {}
                }
                let ended = progress.is_complete();
                // The last curve stays until there is a whole new one; the first grows before one's eyes.
                let first = self
                    .shown
                    .try_with_untracked(|s| s.largest.is_empty())
                    .unwrap_or_default();
                if ended || first {
                    self.shown.try_set(fresh.clone());
                }
                self.progress.try_set((!ended).then_some(progress));
            });
    }

    /// Runs no more.
    fn cancel(self) {
        self.number.update_value(|n| *n += 1);
        self.engine.cancel(Slot::Sweep);
        self.progress.set(None);
    }
}

/// How the need follows one entry, against the memory of several cards.
#[component]
pub fn SweepPanel() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let reading = store.reading();
    let model = Simulation::get().model;
    let state = SweepState::new();
    let swept = Memo::new(move |_| model.with(|m| m.as_ref().map(|m| reading.with(|r| axis(r, m)))));
    let entries = Memo::new(move |_| reading.with(Reading::of_sweep));
    Effect::new(move || state.ask(swept.get(), entries.get()));
    let axes = Signal::derive(move || {
        let all = Axis::ALL.into_iter();
        model.with(|m| {
            m.as_ref()
                .map_or_else(Vec::new, |m| all.filter(|a| a.is_of(m)).map(Axis::name).collect())
        })
    });
    view! {
        <LargestBatchCard />
        <ChartFrame figure=figure(i18n, state.shown)>
            <p class="muted small">{t!(i18n, sweep.explain)}</p>
            <div class="chart-tools sweep-tools">
                <Select key=Key::Sweep choices=axes />
                <CardChips />
                <RunState state again=Callback::new(move |()| state.ask(swept.get_untracked(), entries.get_untracked())) />
            </div>
            <SweepChart shown=state.shown />
            <LargestTable shown=state.shown />
        </ChartFrame>
    }
}

/// How far it has come, and the way to stop it or to begin anew.
#[component]
fn RunState(state: SweepState, again: Callback<()>) -> impl IntoView {
    let i18n = use_i18n();
    let words = move || {
        let progress = state.progress.get().filter(|p| p.of > 0)?;
        let (done, of) = (progress.done.to_string(), progress.of.to_string());
        Some(t_string!(i18n, sweep.computing, done = done, of = of).to_string())
    };
    let running = move || state.progress.with(Option::is_some);
    let stop = move |_| {
        state.cancel();
        state.stopped.set(true);
    };
    view! {
        <div class="sweep-run" data-testid="sweep-state" data-value=move || if running() { "running" } else { "done" }>
            <Show when=running>
                <progress
                    max=move || state.progress.get().map_or(1, |p| p.of.max(1)).to_string()
                    value=move || state.progress.get().map_or(0, |p| p.done).to_string()
                ></progress>
                <span class="muted small">{words}</span>
                <button type="button" class="tool" data-testid="sweep-stop" on:click=stop>
                    {t!(i18n, sweep.cancel)}
                </button>
            </Show>
            <Show when=move || state.stopped.get()>
                <span class="muted small">{t!(i18n, sweep.stopped)}</span>
                <button type="button" class="tool" data-testid="sweep-again" on:click=move |_| again.run(())>
                    {t!(i18n, sweep.again)}
                </button>
            </Show>
        </div>
    }
}
