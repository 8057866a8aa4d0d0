//! Names the sources of the estimated times: what was measured on which card, or the data sheet.

use std::sync::Arc;

use leptos::prelude::*;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::Route;
use crate::worker::timing::{Basis, Timing};

/// Lists the source of the kernels' times and that of the host's pace. Offers a measurement where only the data sheet
/// is known.
#[component]
pub fn Sources(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let (source, name) = (kernel_source(i18n, &timing), basis_name(&timing.basis));
    let other_card = timing
        .other_card
        .clone()
        .map(|card| t_string!(i18n, time.other_card, card = card));
    let measure = matches!(timing.basis, Basis::DataSheet { .. }).then(|| {
        view! {
            <button
                type="button"
                class="tool"
                data-testid="measure-card"
                on:click=move |_| Store::get().route().set(Route::Benchmarks)
            >
                {t!(i18n, time.measure)}
            </button>
        }
    });
    let several = timing
        .communication
        .map(|_| t_string!(i18n, time.several_are_short).to_owned());
    view! {
        <div class="time-source">
            <p class="muted small" data-testid="time-basis" data-value=name>
                {source}
            </p>
            <p class="muted small">{host_source(i18n, &timing)}</p>
            {several.map(|text| view! { <p class="muted small" data-testid="several-are-short">{text}</p> })}
            {other_card.map(|text| view! { <p class="muted small" data-testid="other-card">{text}</p> })}
            {measure}
        </div>
    }
}

/// Name of a source in `data-value`, which tests of the page read.
const fn basis_name(basis: &Basis) -> &'static str {
    match basis {
        Basis::MyCard { .. } => "my-card",
        Basis::Measured { .. } => "measured",
        Basis::DataSheet { .. } => "data-sheet",
    }
}

/// Says in the page's language where the kernels' times come from.
pub fn kernel_source(i18n: Words, timing: &Timing) -> String {
    match timing.basis.clone() {
        Basis::MyCard { card, date } => {
            let date = date.unwrap_or_default();
            let day = date.split('T').next().unwrap_or_default();
            t_string!(i18n, time.from_mine, card = card, date = day)
        }
        Basis::Measured { card, software } => t_string!(i18n, time.from_measured, card = card, software = software),
        Basis::DataSheet { from } => {
            let card = untrack(|| Simulation::get().card()).and_then(Result::ok);
            let name = card.map(|card| card.name).unwrap_or_default();
            t_string!(i18n, time.from_sheet, card = name, from = from)
        }
    }
}

/// Says in the page's language where the times of the host's operations come from.
pub fn host_source(i18n: Words, timing: &Timing) -> String {
    t_string!(i18n, time.from_host, host = timing.host.clone())
}
