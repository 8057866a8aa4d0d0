//! Timeline of the step's memory.

use leptos::ev::{KeyboardEvent, PointerEvent};
use leptos::html;
use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Instant;
use vramscope_engine::tape::Kind;
use vramscope_engine::units::Bytes;

use super::instant::InstantList;
use super::live;
use crate::charts::{Canvas, ChartFrame, Figure, Palette, Plot, Table, TimelineChart, kind_class};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{text, truth};
use crate::shell::{Store, stem};
use crate::simulation::{Detailed, Simulation};
use crate::words;
use crate::worker::view::Live;

/// Curve of the step, stacked by kind, beside the tensors live at the pointer or, by default, at the peak.
#[component]
pub fn TimelinePanel() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let pointed = RwSignal::new(None::<Instant>);
    let instant = Memo::new(move |_| {
        let curve = &simulation.detailed.get()?.details.curve;
        Some(pointed.get().map_or(curve.peak, |i| i.min(curve.len)))
    });
    let live = live::follow(instant);
    let figure = figure(i18n, simulation);
    view! {
        <ChartFrame figure>
            <p class="muted small">{t!(i18n, timeline.explain)}</p>
            <KindLegend />
            <div class="timeline">
                <Cursor pointed instant live>
                    <Canvas draw=move |surface| figure.draw.run(surface) />
                </Cursor>
                <InstantList live pointed />
            </div>
        </ChartFrame>
    }
}

fn figure(i18n: Words, simulation: Simulation) -> Figure {
    let store = Store::get();
    Figure {
        id: "timeline-chart",
        title: Signal::derive(move || t_string!(i18n, plan.timeline).to_string()),
        stem: Signal::derive(move || stem(store, "timeline")),
        draw: Callback::new(move |surface| match simulation.detailed.get() {
            Some(detailed) => chart(i18n, &detailed).draw(surface, &Palette::read()),
            None => Ok(()),
        }),
        shown: Callback::new(move |()| table(i18n, simulation, Some(SHOWN_ROWS), gib)),
        data: Callback::new(move |()| table(i18n, simulation, None, |bytes| bytes.get().to_string())),
    }
}

/// Rows of the table on the page; the exported file has all columns of the chart.
const SHOWN_ROWS: usize = 32;

/// Builds the table of live bytes by instant: phase, total, and each kind. If rows are limited, each stands for a span
/// of columns and shows its highest total.
fn table(i18n: Words, simulation: Simulation, most: Option<usize>, words: fn(Bytes) -> String) -> Table {
    let head = [
        t_string!(i18n, timeline.phase).to_string(),
        t_string!(i18n, timeline.instant).to_string(),
        t_string!(i18n, timeline.total).to_string(),
    ];
    let head = head
        .into_iter()
        .chain(Kind::ALL.map(|kind| words::kind(i18n, kind)))
        .collect();
    let Some(detailed) = simulation.detailed.get() else {
        return Table { head, rows: Vec::new() };
    };
    let curve = &detailed.details.curve;
    let total = |bytes: &[Bytes; Kind::COUNT]| bytes.iter().copied().sum::<Bytes>();
    let span = curve.columns.len().div_ceil(most.unwrap_or(usize::MAX)).max(1);
    let highest = curve
        .columns
        .chunks(span)
        .filter_map(|columns| columns.iter().max_by_key(|c| total(&c.1)));
    let rows = highest.map(|(instant, bytes)| {
        let phase = curve.phases.iter().rfind(|(_, begin)| begin <= instant);
        let first = [
            phase.map_or_else(String::new, |(phase, _)| words::phase(i18n, *phase)),
            instant.to_string(),
            words(total(bytes)),
        ];
        first.into_iter().chain(bytes.map(words)).collect()
    });
    Table {
        head,
        rows: rows.collect(),
    }
}

fn chart(i18n: Words, Detailed { run, details }: &Detailed) -> TimelineChart {
    let curve = &details.curve;
    let phases = curve.phases.iter();
    let words = t_string!(i18n, timeline.peak, bytes = gib(run.figures.peak_allocated)).to_string();
    let card = run.card.as_ref().ok();
    TimelineChart {
        len: curve.len,
        columns: curve.columns.clone(),
        phases: phases
            .map(|(phase, begin)| (*begin, words::phase(i18n, *phase)))
            .collect(),
        peak: (curve.peak, details.at_peak.total, words),
        limit: card.map(|card| (card.fit.for_allocator(), card.name.clone())),
    }
}

#[component]
fn KindLegend() -> impl IntoView {
    let i18n = use_i18n();
    let items = Kind::ALL.map(|kind| {
        view! {
            <li>
                <span class=format!("swatch {}", kind_class(kind)) aria-hidden="true"></span>
                {text(move || words::kind(i18n, kind))}
            </li>
        }
    });
    view! { <ul class="kinds">{items.collect_view()}</ul> }
}

/// Frame around the curve that follows the pointer and the arrow keys and marks the instant.
#[component]
fn Cursor(
    pointed: RwSignal<Option<Instant>>,
    instant: Memo<Option<Instant>>,
    live: RwSignal<Option<Live>>,
    children: Children,
) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let frame = NodeRef::<html::Div>::new();
    let len = move || {
        simulation
            .detailed
            .get()
            .map_or(0, |detailed| detailed.details.curve.len)
    };
    let on_pointer = move |event: PointerEvent| {
        let Some(frame) = frame.get() else { return };
        let bounds = frame.get_bounding_client_rect();
        pointed.set(instant_at(
            f64::from(event.client_x()) - bounds.left(),
            bounds.width(),
            len(),
        ));
    };
    let on_key = move |event: KeyboardEvent| {
        let Some(now) = instant.get_untracked() else { return };
        if let Some(next) = moved(&event.key(), now, len()) {
            event.prevent_default();
            pointed.set(next);
        }
    };
    let place = move || {
        let share = instant.get().unwrap_or(0) as f64 / len().max(1) as f64;
        let plot = Plot::TIMELINE;
        format!(
            "calc({}px + (100% - {}px) * {share:.6})",
            plot.left,
            plot.left + plot.right
        )
    };
    view! {
        <div
            class="cursor"
            node_ref=frame
            tabindex="0"
            role="slider"
            data-testid="timeline"
            aria-label=t!(i18n, timeline.slider)
            aria-valuemin="0"
            aria-valuemax=text(move || len().to_string())
            aria-valuenow=text(move || instant.get().unwrap_or(0).to_string())
            aria-valuetext=move || live.with(|l| l.as_ref().map(|l| spoken(i18n, l)))
            on:pointermove=on_pointer
            on:pointerdown=on_pointer
            on:pointerleave=move |_| pointed.set(None)
            on:keydown=on_key
        >
            {children()}
            <span class="cursor-line" class:cursor-on=truth(move || pointed.get().is_some()) style:left=place></span>
        </div>
    }
}

/// Instant to which a key moves; the inner `None` is none at all, the outer a key without a meaning.
fn moved(key: &str, now: Instant, len: usize) -> Option<Option<Instant>> {
    let step = (len / 200).max(1);
    Some(match key {
        "ArrowRight" => Some((now + step).min(len)),
        "ArrowLeft" => Some(now.saturating_sub(step)),
        "Home" => Some(0),
        "End" => Some(len),
        "Escape" => None,
        _ => return None,
    })
}

/// Instant under a horizontal position of the frame; `None` to the left of the plot.
fn instant_at(x: f64, width: f64, len: usize) -> Option<Instant> {
    let plot = Plot::TIMELINE;
    let share = (x - plot.left) / (width - plot.left - plot.right).max(1.0);
    (share >= 0.0).then(|| ((share.min(1.0) * len as f64).round() as usize).min(len))
}

fn spoken(i18n: Words, live: &Live) -> String {
    let instant = live.instant.to_string();
    t_string!(i18n, timeline.spoken, instant = instant, bytes = gib(live.total)).to_string()
}
