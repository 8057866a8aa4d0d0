//! Peak of the run at a glance.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::derivation::Quantity;

use super::explain::Explained;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::simulation::Simulation;
use crate::words;

/// Shows the peak's size and phase.
#[component]
pub fn Peak() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let bytes = simulation.text(|run| gib(run.figures.peak_allocated));
    let phase = simulation.text(move |run| {
        let phase = words::phase(i18n, run.figures.peak_phase);
        t_string!(i18n, numbers.in_phase, phase = phase)
    });
    view! {
        <p class="peak">
            <span class="peak-name">{t!(i18n, numbers.allocated)}</span>
            <strong>
                <Explained quantity=Quantity::PeakAllocated text=bytes />
            </strong>
            <span class="peak-name">{text(move || phase.get())}</span>
        </p>
    }
}
