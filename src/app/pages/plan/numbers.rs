use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;

use super::explain::Explained;
use crate::i18n::{Words, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::words;
use crate::worker::view::Run;

/// One figure: which number it is, how it is shown, and the name by which tests and scripts find it.
struct Figure {
    quantity: Quantity,
    shown: String,
    exact: String,
    /// What else to know of it.
    note: Option<String>,
    testid: &'static str,
    value: u64,
}

impl Figure {
    fn bytes(quantity: Quantity, testid: &'static str, bytes: Bytes) -> Self {
        Self {
            quantity,
            shown: gib(bytes),
            exact: exact(bytes),
            note: None,
            testid,
            value: bytes.get(),
        }
    }

    fn weights(i18n: Words, quantity: Quantity, testid: &'static str, n: u64) -> Self {
        Self {
            quantity,
            shown: words::count(i18n, n),
            exact: grouped(n),
            note: None,
            testid,
            value: n,
        }
    }

    fn positions(quantity: Quantity, testid: &'static str, n: u64) -> Self {
        Self {
            quantity,
            shown: grouped(n),
            exact: String::new(),
            note: None,
            testid,
            value: n,
        }
    }
}

/// The figures of the run, exact to the byte.
#[component]
pub fn Numbers() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let run = simulation.run()?;
        let rows = figures(i18n, &run).into_iter().map(|f| {
            view! {
                <div class="figure">
                    <dt>{words::quantity(i18n, &f.quantity)}</dt>
                    <dd>
                        <strong>
                            <Explained quantity=f.quantity text=f.shown testid=f.testid value=f.value />
                        </strong>
                        <span class="exact">{f.exact}</span>
                    </dd>
                    {f.note.map(|note| view! { <dd class="figure-note">{note}</dd> })}
                </div>
            }
        });
        Some(view! { <dl class="figures">{rows.collect_view()}</dl> }.into_any())
    })
}

fn figures(i18n: Words, run: &Run) -> Vec<Figure> {
    use Quantity as Q;
    let of = &run.figures;
    let outside = run.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.outside_torch());
    let mut figures = vec![
        Figure::bytes(Q::PeakAllocated, "peak-allocated", of.peak_allocated),
        Figure {
            note: of
                .least_reserved
                .map(|(layout, bytes)| words::reserved(i18n, layout, gib(bytes))),
            ..Figure::bytes(Q::PeakReserved, "peak-reserved", of.peak_reserved)
        },
        Figure::bytes(Q::OutsideTorch, "outside-torch", outside),
    ];
    let inputs = run.inputs;
    figures.extend(inputs.logits.map(|bytes| Figure::bytes(Q::Logits, "logits", bytes)));
    figures.push(Figure::weights(i18n, Q::Params, "params", of.params));
    figures.push(Figure::weights(i18n, Q::Trainable, "trainable", of.trainable));
    let positions = |quantity, testid| move |n| Figure::positions(quantity, testid, n);
    figures.extend(inputs.positions.map(positions(Q::Positions, "positions")));
    figures.extend(inputs.image_tokens.map(positions(Q::ImageTokens, "image-tokens")));
    figures
}
