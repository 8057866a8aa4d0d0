use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Part;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;

use super::explain::Explained;
use crate::charts::{Bar, Segment, part_class};
use crate::i18n::{t, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::words;
use crate::worker::view::Run;

/// What the run takes, part by part, against what the card has.
#[component]
pub fn MemoryBar() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let run = simulation.run()?;
        let parts = &run.parts;
        let scale = scale(&run);
        let segments = parts
            .iter()
            .map(|(part, bytes)| Segment {
                class: part_class(*part),
                share: ratio(*bytes, scale),
                title: format!("{}: {}", words::part(i18n, *part), gib(*bytes)),
            })
            .collect();
        let legend = parts.iter().map(|(part, bytes)| {
            view! {
                <li>
                    <span class=format!("swatch {}", part_class(*part)) aria-hidden="true"></span>
                    <span class="legend-name">{words::part(i18n, *part)}</span>
                    <span class="legend-value">
                        <Explained quantity=quantity(*part) text=gib(*bytes) />
                    </span>
                </li>
            }
        });
        let free = run.card.as_ref().ok().filter(|card| card.fit.spare() > Bytes::ZERO);
        let free = free.map(|card| {
            view! {
                <li>
                    <span class="swatch part-free" aria-hidden="true"></span>
                    <span class="legend-name">{t!(i18n, part.free)}</span>
                    <span class="legend-value">
                        <Explained quantity=Quantity::Spare text=gib(card.fit.spare()) />
                    </span>
                </li>
            }
        });
        let over = run.card.as_ref().ok().map(|card| {
            let width = format!("{:.4}%", ratio(card.fit.short(), scale) * 100.0);
            view! { <span class="over" style:width=width aria-hidden="true"></span> }
        });
        let limit = run
            .card
            .as_ref()
            .ok()
            .map(|card| limit_mark(card.fit.room, scale, &card.name));
        let bar = view! {
            <div class="memory-bar">
                <Bar segments />
                {over}
                {limit}
            </div>
            <ul class="legend">{legend.collect_view()} {free}</ul>
        };
        Some(bar.into_any())
    })
}

fn quantity(part: Part) -> Quantity {
    match part {
        Part::Live(kind) => Quantity::Kind(kind),
        Part::Reserve => Quantity::Reserve,
        Part::Outside(name) => Quantity::Outside(name),
    }
}

/// The bar's whole length: the card, or the need where it passes the card.
fn scale(run: &Run) -> Bytes {
    match &run.card {
        Ok(card) => card.fit.needed.max(card.fit.room),
        Err(_) => run.figures.peak_reserved,
    }
}

fn ratio(part: Bytes, whole: Bytes) -> f64 {
    part.get() as f64 / whole.get().max(1) as f64
}

/// Where the card ends.
fn limit_mark(room: Bytes, scale: Bytes, name: &str) -> impl IntoView + use<> {
    let place = format!("{:.4}%", ratio(room, scale) * 100.0);
    // Near the left edge there is no room for its label on that side.
    let early = ratio(room, scale) < 0.35;
    let label = format!("{name} · {}", gib(room));
    view! {
        <span class="limit" class:limit-early=early style:left=place aria-hidden="true">
            <span class="limit-label">{label}</span>
        </span>
    }
}
