//! Key figures of the run.

use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;

use super::explain::Explained;
use crate::i18n::{Words, use_i18n};
use crate::part::{part, text};
use crate::simulation::Simulation;
use crate::words;
use crate::worker::view::RunView;

/// A figure: the quantity, its formatted and exact value, and the id by which tests and scripts find it.
#[derive(Clone, PartialEq)]
struct Figure {
    quantity: Quantity,
    shown: String,
    exact: String,
    /// Additional remark; usually empty.
    note: String,
    testid: &'static str,
    value: u64,
}

impl Figure {
    fn bytes(quantity: Quantity, testid: &'static str, bytes: Bytes) -> Self {
        Self {
            quantity,
            shown: gib(bytes),
            exact: exact(bytes),
            note: String::new(),
            testid,
            value: bytes.get(),
        }
    }

    fn weights(i18n: Words, quantity: Quantity, testid: &'static str, n: u64) -> Self {
        Self {
            quantity,
            shown: words::count(i18n, n),
            exact: grouped(n),
            note: String::new(),
            testid,
            value: n,
        }
    }

    fn positions(quantity: Quantity, testid: &'static str, n: u64) -> Self {
        Self {
            quantity,
            shown: grouped(n),
            exact: String::new(),
            note: String::new(),
            testid,
            value: n,
        }
    }
}

/// Lists the figures of the run, exact to the byte. A row keeps its element while its figure changes.
#[component]
pub fn Numbers() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let figures = Memo::new(move |last: Option<&Vec<Figure>>| match simulation.run() {
        Some(run) => figures(i18n, &run),
        None => last.cloned().unwrap_or_default(),
    });
    let lines = Memo::new(move |_| figures.with(|all| all.iter().map(|f| f.testid).collect::<Vec<_>>()));
    part(move || {
        let rows = lines.get().into_iter().enumerate().map(|(place, testid)| {
            let of = move |read: fn(&Figure) -> String| move || figures.with(|all| all.get(place).map(read));
            let shown = Signal::derive(move || of(|f| f.shown.clone())().unwrap_or_default());
            let value = Signal::derive(move || figures.with(|all| all.get(place).map_or(0, |f| f.value)));
            let quantity = figures.with_untracked(|all| all[place].quantity.clone());
            let name = quantity.clone();
            view! {
                <div class="figure">
                    <dt>{text(move || words::quantity(i18n, &name))}</dt>
                    <dd>
                        <strong>
                            <Explained quantity text=shown testid value />
                        </strong>
                        <span class="exact">{of(|f| f.exact.clone())}</span>
                    </dd>
                    <dd class="figure-note">{of(|f| f.note.clone())}</dd>
                </div>
            }
        });
        Some(view! { <dl class="figures">{rows.collect_view()}</dl> }.into_any())
    })
}

fn figures(i18n: Words, run: &RunView) -> Vec<Figure> {
    use Quantity as Q;
    let of = &run.figures;
    let outside = run.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.outside_torch());
    let mut figures = vec![
        Figure::bytes(Q::PeakAllocated, "peak-allocated", of.peak_allocated),
        Figure {
            note: of
                .least_reserved
                .map(|(layout, bytes)| words::reserved(i18n, layout, gib(bytes)))
                .unwrap_or_default(),
            ..Figure::bytes(Q::PeakReserved, "peak-reserved", of.peak_reserved)
        },
        Figure::bytes(Q::OutsideTorch, "outside-torch", outside),
    ];
    if let Some(pass) = &run.pass {
        figures.push(Figure::bytes(Q::AfterModel, "after-model", pass.after_model));
        figures.push(Figure::bytes(Q::WithOutputs, "with-outputs", pass.with_outputs));
        figures.push(Figure::bytes(Q::Cache, "cache", pass.cache));
    }
    let inputs = run.inputs;
    figures.extend(inputs.logits.map(|bytes| Figure::bytes(Q::Logits, "logits", bytes)));
    figures.push(Figure::weights(i18n, Q::Params, "params", of.params));
    if run.pass.is_none() {
        figures.push(Figure::weights(i18n, Q::Trainable, "trainable", of.trainable));
    }
    let positions = |quantity, testid| move |n| Figure::positions(quantity, testid, n);
    figures.extend(inputs.positions.map(positions(Q::Positions, "positions")));
    figures.extend(inputs.image_tokens.map(positions(Q::ImageTokens, "image-tokens")));
    figures
}
