use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::derivation::Quantity;

use super::explain::Explained;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::simulation::Simulation;
use crate::words;

/// The peak at a glance: how high, and in which phase.
#[component]
pub fn Peak() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let run = simulation.run()?;
        let figures = &run.figures;
        let phase = words::phase(i18n, figures.peak_phase);
        let peak = view! {
            <p class="peak">
                <span class="peak-name">{t!(i18n, numbers.allocated)}</span>
                <strong>
                    <Explained quantity=Quantity::PeakAllocated text=gib(figures.peak_allocated) />
                </strong>
                <span class="peak-name">{t_string!(i18n, numbers.in_phase, phase = phase)}</span>
            </p>
        };
        Some(peak.into_any())
    })
}
