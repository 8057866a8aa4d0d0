//! Chart of the sweep.

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Axis as Entry, Needed, Point};

use super::explain::Explained;
use super::sweep::Swept;
use crate::charts::{Axis, Figure, Limit, LineChart, LineSwatch, Lines, Mark, Palette, Series, Table, Unit};
use crate::i18n::{Words, t_string, use_i18n};
use crate::part::part;
use crate::shell::{Store, stem};
use crate::simulation::Simulation;
use crate::state::Key;
use crate::words;
use crate::worker::protocol::Largest;

/// Builds the chart with its exports.
pub fn figure(i18n: Words, shown: RwSignal<Swept>) -> Figure {
    let store = Store::get();
    Figure {
        id: "sweep-chart",
        title: Signal::derive(move || t_string!(i18n, sweep.title).to_string()),
        stem: Signal::derive(move || stem(store, "sweep")),
        draw: Callback::new(move |surface| chart(i18n, &shown.get()).draw(surface, &Palette::read())),
        shown: Callback::new(move |()| shown.with(|swept| table(i18n, swept, gib))),
        data: Callback::new(move |()| shown.with(|swept| table(i18n, swept, |b| b.get().to_string()))),
    }
}

/// The chart, with its figures at the pointer.
#[component]
pub fn SweepChart(shown: RwSignal<Swept>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let pointed = RwSignal::new(None::<f64>);
    let picked = RwSignal::new(None::<f64>);
    let chart = Memo::new(move |_| shown.with(|swept| chart(i18n, swept)));
    let (model, reading) = (Simulation::get().model, store.reading());
    // Value of the current run: the entered one, or the model's own if none is entered.
    let own = Memo::new(move |_| {
        let axis = shown.with(|s| s.axis)?;
        model.with(|m| m.as_ref().map(|m| reading.with(|r| axis.value(m, &r.setup) as f64)))
    });
    let resting = Signal::derive(move || {
        let values = chart.with(LineChart::values);
        let wanted = picked.get().or(own.get())?;
        values.iter().copied().find(|v| *v >= wanted).or(values.last().copied())
    });
    let here = move || pointed.get().or(resting.get()).map(|v| v as u64);
    let needed = move || here().and_then(|value| shown.with(|swept| at(swept, value)));
    let label = Signal::derive(move || shown.with(|swept| axis_name(i18n, swept)));
    let spoken = Signal::derive(move || {
        let value = here().map_or_else(String::new, grouped);
        let needed = needed().map_or_else(String::new, |n| gib(n.needed));
        format!("{} {value}: {needed}", label.get())
    });
    let entries = Simulation::get().entries;
    let figure = move |quantity: Quantity, of: fn(&Needed) -> Bytes| {
        part(move || {
            let (value, needed) = here().zip(needed())?;
            let changed = shown.with(|swept| entries.with_value(|e| swept.entries_at(e, value, None)));
            let quantity = Quantity::Changed(Box::new(quantity.clone()));
            Some(view! { <Explained quantity changed text=gib(of(&needed)) /> }.into_any())
        })
    };
    view! {
        <Lines chart pointed resting on_pick=Callback::new(move |v| picked.set(Some(v))) label spoken testid="sweep-slider" />
        <dl class="sweep-readout" data-testid="sweep-here" data-value=move || here().map(|v| v.to_string())>
            <div>
                <dt>{move || label.get()}</dt>
                <dd>{move || here().map(grouped)}</dd>
            </div>
            <div data-testid="sweep-needed" data-value=move || needed().map(|n| n.needed.get().to_string())>
                <dt>
                    <LineSwatch style=0 />
                    {move || needed_name(i18n)}
                </dt>
                <dd>{figure(Quantity::Needed, |n| n.needed)}</dd>
            </div>
            <div data-testid="sweep-allocated" data-value=move || needed().map(|n| n.allocated.get().to_string())>
                <dt>
                    <LineSwatch style=1 />
                    {move || t_string!(i18n, sweep.allocated).to_string()}
                </dt>
                <dd>{figure(Quantity::PeakAllocated, |n| n.allocated)}</dd>
            </div>
        </dl>
        <p class="muted small">{move || shown.with(|swept| refusals(i18n, swept))}</p>
    }
}

fn at(swept: &Swept, value: u64) -> Option<Needed> {
    let point = swept.points.iter().find(|p| p.value == value)?;
    point.outcome.clone().ok()
}

fn axis_name(i18n: Words, swept: &Swept) -> String {
    let name = swept.axis.map_or("batch", Entry::name);
    words::choice(i18n, Key::Sweep, name)
}

fn needed_name(i18n: Words) -> String {
    let card = Store::get().text(Key::Gpu);
    t_string!(i18n, sweep.needed, card = card).to_string()
}

/// Explains why the curve starts late or ends early.
fn refusals(i18n: Words, swept: &Swept) -> String {
    let refused = |point: &Point| {
        let why = point.outcome.as_ref().err()?;
        Some((grouped(point.value), words::refusal(i18n, why)))
    };
    let last = swept.points.iter().rev().find_map(refused);
    last.map_or_else(String::new, |(value, why)| {
        t_string!(i18n, sweep.refused, value = value, why = why).to_string()
    })
}

fn chart(i18n: Words, swept: &Swept) -> LineChart {
    let series = |name: String, style, of: fn(&Needed) -> Bytes| Series {
        name,
        style,
        points: swept
            .points
            .iter()
            .map(|p| (p.value as f64, p.outcome.as_ref().ok().map(|n| of(n).get() as f64)))
            .collect(),
        measured: Vec::new(),
    };
    let values: Vec<f64> = swept.points.iter().map(|p| p.value as f64).collect();
    let rooms = swept.largest.iter().map(|largest| largest.room as f64);
    let heights = swept
        .points
        .iter()
        .filter_map(|p| Some(p.outcome.as_ref().ok()?.needed.get() as f64));
    let (highest, widest) = (heights.clone().fold(0.0, f64::max), rooms.clone().fold(0.0, f64::max));
    // Every card's line is visible, even if the curve stopped below it; nothing above the largest card matters.
    let top = if widest > 0.0 { widest * 1.08 } else { highest };
    let x = Axis::over(Unit::Count, true, axis_name(i18n, swept), values.iter().copied());
    LineChart {
        x: match (values.first(), values.last()) {
            (Some(first), Some(last)) => x.tight(*first, *last),
            _ => x,
        },
        y: Axis::over(
            Unit::Bytes,
            false,
            t_string!(i18n, sweep.y_axis).to_string(),
            heights.filter(|h| *h <= top).chain([top]),
        ),
        series: vec![
            series(needed_name(i18n), 0, |n| n.needed),
            series(t_string!(i18n, sweep.allocated).to_string(), 1, |n| n.allocated),
        ],
        limits: swept.largest.iter().map(limit).collect(),
        marks: swept.largest.iter().filter_map(mark).collect(),
        pointed: None,
    }
}

fn limit(largest: &Largest) -> Limit {
    Limit {
        y: largest.room as f64,
        name: largest.card.clone(),
    }
}

fn mark(largest: &Largest) -> Option<Mark> {
    let (value, needed) = largest.found.as_ref()?;
    Some(Mark {
        x: *value as f64,
        y: needed.needed.get() as f64,
        words: grouped(*value),
    })
}

fn table(i18n: Words, swept: &Swept, amount: fn(Bytes) -> String) -> Table {
    let head = [
        axis_name(i18n, swept),
        needed_name(i18n),
        t_string!(i18n, sweep.allocated).to_string(),
        String::new(),
    ];
    let row = |point: &Point| {
        let value = point.value.to_string();
        match &point.outcome {
            Ok(needed) => vec![value, amount(needed.needed), amount(needed.allocated), String::new()],
            Err(why) => vec![value, String::new(), String::new(), words::refusal(i18n, why)],
        }
    };
    Table {
        head: head.into(),
        rows: swept.points.iter().map(row).collect(),
    }
}
