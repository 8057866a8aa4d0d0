//! Sources of the times.

use std::sync::Arc;

use leptos::prelude::*;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::Route;
use crate::worker::timing::{Basis, Timing};

/// Lists the sources of the times: measurements and data sheets.
#[component]
pub fn Sources(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let (basis, key) = (kernels(i18n, &timing), key(&timing.basis));
    let other = timing
        .unused
        .clone()
        .map(|card| t_string!(i18n, time.other_card, card = card));
    let measure = (timing.basis == Basis::DataSheet).then(|| {
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
    view! {
        <div class="time-source">
            <p class="muted small" data-testid="time-basis" data-value=key>
                {basis}
            </p>
            <p class="muted small">{host(i18n, &timing)}</p>
            {other.map(|other| view! { <p class="muted small" data-testid="other-card">{other}</p> })}
            {measure}
        </div>
    }
}

const fn key(basis: &Basis) -> &'static str {
    match basis {
        Basis::MyCard { .. } => "my-card",
        Basis::Measured { .. } => "measured",
        Basis::DataSheet => "data-sheet",
    }
}

/// Source of the kernel times.
pub fn kernels(i18n: Words, timing: &Timing) -> String {
    match timing.basis.clone() {
        Basis::MyCard { card, date } => {
            let date = date.unwrap_or_default();
            let day = date.split('T').next().unwrap_or_default();
            t_string!(i18n, time.from_mine, card = card, date = day)
        }
        Basis::Measured { card, software } => t_string!(i18n, time.from_measured, card = card, software = software),
        Basis::DataSheet => {
            let card = untrack(|| Simulation::get().card()).and_then(Result::ok);
            let name = card.map(|card| card.name).unwrap_or_default();
            t_string!(i18n, time.from_sheet, card = name)
        }
    }
}

/// Source of the host's pace.
pub fn host(i18n: Words, timing: &Timing) -> String {
    t_string!(i18n, time.from_host, host = timing.host.clone())
}
