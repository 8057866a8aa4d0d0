//! Bar of the run's memory on the card.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Part;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Fit;

use super::explain::Explained;
use crate::charts::{Bar, Segment, part_class};
use crate::i18n::{Words, t, use_i18n};
use crate::part::{text, truth};
use crate::simulation::Simulation;
use crate::words;
use crate::worker::view::RunView;

/// Shows the run's memory by part against the card's. Segments keep their elements while their amounts change.
#[component]
pub fn MemoryBar() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let segments = Signal::derive(move || simulation.run().map_or_else(Vec::new, |run| segments(i18n, &run)));
    let parts = Memo::new(move |_| {
        let run = simulation.run();
        run.map_or_else(Vec::new, |run| run.parts.iter().map(|(part, _)| *part).collect())
    });
    let is_free = Memo::new(move |_| simulation.run().is_some_and(|run| spare(&run) > Bytes::ZERO));
    let legend = move || {
        let parts = parts.get().into_iter().enumerate().map(|(place, part)| {
            let bytes = simulation.text(move |run| run.parts.get(place).map_or_else(String::new, |(_, b)| gib(*b)));
            view! {
                <li>
                    <span class=format!("swatch {}", part_class(part)) aria-hidden="true"></span>
                    <span class="legend-name">{text(move || words::part(i18n, part))}</span>
                    <span class="legend-value">
                        <Explained quantity=quantity(part) text=bytes />
                    </span>
                </li>
            }
        });
        parts.collect_view()
    };
    view! {
        <div class="memory-bar">
            <Bar segments />
            <Limit />
        </div>
        <ul class="legend">
            {legend}
            <Show when=move || is_free.get()>
                <li>
                    <span class="swatch part-free" aria-hidden="true"></span>
                    <span class="legend-name">{t!(i18n, part.free)}</span>
                    <span class="legend-value">
                        <Explained quantity=Quantity::Spare text=simulation.text(|run| gib(spare(run))) />
                    </span>
                </li>
            </Show>
        </ul>
    }
}

/// Parts of a run's memory, as shares of the card's.
pub(super) fn segments(i18n: Words, run: &RunView) -> Vec<Segment> {
    let scale = scale(run);
    let segment = |(part, bytes): &(Part, Bytes)| Segment {
        class: part_class(*part),
        share: ratio(*bytes, scale),
        title: format!("{}: {}", words::part(i18n, *part), gib(*bytes)),
    };
    run.parts.iter().map(segment).collect()
}

/// Marks the card's limit and the amount beyond it.
#[component]
fn Limit() -> impl IntoView {
    let simulation = Simulation::get();
    let is_any = Memo::new(move |_| simulation.card().is_some_and(|card| card.is_ok()));
    let of = move |read: fn(&RunView, &Fit) -> String| {
        simulation.text(move |run| {
            run.card
                .as_ref()
                .map_or_else(|_| String::new(), |card| read(run, &card.fit))
        })
    };
    let short = of(|run, fit| percent(ratio(fit.short(), scale(run))));
    let place = of(|run, fit| percent(ratio(fit.room, scale(run))));
    let label = simulation.text(|run| {
        let card = run.card.as_ref();
        card.map_or_else(
            |_| String::new(),
            |card| format!("{} · {}", card.name, gib(card.fit.room)),
        )
    });
    // Near the left edge there is no room for the label on that side.
    let early = Memo::new(move |_| {
        let run = simulation.run();
        run.is_some_and(|run| {
            run.card
                .as_ref()
                .is_ok_and(|card| ratio(card.fit.room, scale(&run)) < 0.35)
        })
    });
    view! {
        <Show when=move || is_any.get()>
            <span class="over" style:width=text(move || short.get()) aria-hidden="true"></span>
            <span class="limit" class:limit-early=truth(move || early.get()) style:left=text(move || place.get()) aria-hidden="true">
                <span class="limit-label">{text(move || label.get())}</span>
            </span>
        </Show>
    }
}

fn percent(share: f64) -> String {
    format!("{:.4}%", share * 100.0)
}

fn spare(run: &RunView) -> Bytes {
    run.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.spare())
}

fn quantity(part: Part) -> Quantity {
    match part {
        Part::Live(kind) => Quantity::Kind(kind),
        Part::Reserve => Quantity::Reserve,
        Part::Outside(name) => Quantity::Outside(name),
    }
}

/// Bytes that the whole bar stands for: the card's memory, or the run's if that is larger.
fn scale(run: &RunView) -> Bytes {
    match &run.card {
        Ok(card) => card.fit.needed.max(card.fit.room),
        Err(_) => run.figures.peak_reserved,
    }
}

fn ratio(part: Bytes, whole: Bytes) -> f64 {
    part.get() as f64 / whole.get().max(1) as f64
}
