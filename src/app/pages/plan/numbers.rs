use leptos::prelude::*;
use vramscope_engine::format::{count, exact, gib, grouped};
use vramscope_engine::units::Bytes;

use crate::i18n::{Words, t_string, use_i18n};
use crate::simulation::Simulation;
use crate::worker::view::Run;

/// One figure with its name, its exact value, and the name by which tests and scripts find it.
struct Figure {
    name: String,
    shown: String,
    exact: String,
    testid: &'static str,
    value: u64,
}

impl Figure {
    fn bytes(name: String, testid: &'static str, bytes: Bytes) -> Self {
        Self {
            name,
            shown: gib(bytes),
            exact: exact(bytes),
            testid,
            value: bytes.get(),
        }
    }

    fn count(name: String, testid: &'static str, n: u64) -> Self {
        Self {
            name,
            shown: count(n),
            exact: grouped(n),
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
    move || {
        let run = simulation.run()?;
        let rows = figures(i18n, &run).into_iter().map(|f| {
            view! {
                <div class="figure">
                    <dt>{f.name}</dt>
                    <dd>
                        <strong data-testid=f.testid data-value=f.value.to_string()>
                            {f.shown}
                        </strong>
                        <span class="exact">{f.exact}</span>
                    </dd>
                </div>
            }
        });
        Some(view! { <dl class="figures">{rows.collect_view()}</dl> })
    }
}

fn figures(i18n: Words, run: &Run) -> [Figure; 5] {
    let words = [
        t_string!(i18n, numbers.allocated).to_string(),
        t_string!(i18n, numbers.reserved).to_string(),
        t_string!(i18n, numbers.outside).to_string(),
        t_string!(i18n, numbers.params).to_string(),
        t_string!(i18n, numbers.trainable).to_string(),
    ];
    let [allocated, reserved, outside, params, trainable] = words;
    let of = &run.figures;
    let outside_bytes = run.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.outside_torch());
    [
        Figure::bytes(allocated, "peak-allocated", of.peak_allocated),
        Figure::bytes(reserved, "peak-reserved", of.peak_reserved),
        Figure::bytes(outside, "outside-torch", outside_bytes),
        Figure::count(params, "params", of.params),
        Figure::count(trainable, "trainable", of.trainable),
    ]
}
