//! Sweep of one entry.

use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::Model;
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

/// Delay after the last entry before a sweep starts: its simulations would delay the run's own.
const REST: Duration = Duration::from_millis(600);

/// Results of a sweep so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// Entry that is varied.
    pub axis: Option<Axis>,
    /// Simulated values, in rising order.
    pub points: Vec<Point>,
    /// Largest value for each card.
    pub largest: Vec<Largest>,
}

impl Swept {
    /// Entries for one value, on the selected card or another one.
    pub fn entries_at(&self, entries: &Draft, value: u64, card: Option<&str>) -> Option<Draft> {
        let mut entries = entries.clone();
        entries.set(self.axis?.setting(), value.to_string());
        if let Some(card) = card.filter(|card| *card != entries.get(Key::Gpu)) {
            entries.set(Key::Gpu, card);
            // A memory limit applies to the selected card only.
            entries.set(Key::LimitGib, "");
        }
        Some(entries)
    }
}

/// State of the page's sweep.
#[derive(Clone, Copy)]
pub struct SweepState {
    /// Results on screen: the last complete sweep, or the first one while it grows.
    pub shown: RwSignal<Swept>,
    /// Progress of the running sweep.
    pub progress: RwSignal<Option<Progress>>,
    /// True if the user stopped it.
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

    /// Starts a new sweep after a delay and drops the old one.
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
                // The last curve stays until the new one is complete; only the first one is shown while it grows.
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

    /// Stops the sweep.
    fn cancel(self) {
        self.number.update_value(|n| *n += 1);
        self.engine.cancel(Slot::Sweep);
        self.progress.set(None);
    }
}

/// Chart of the memory against one entry, with the limits of several cards.
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
    let axes = Memo::new(move |_| {
        let of = |m: &Model| {
            let applies = |axis: &Axis| reading.with(|r| axis.applies(m, &r.setup));
            Axis::all().filter(applies).map(Axis::name).collect::<Vec<_>>()
        };
        model.with(|m| m.as_ref().map(of).unwrap_or_default())
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

/// Progress of the sweep, with buttons to stop and restart it.
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
