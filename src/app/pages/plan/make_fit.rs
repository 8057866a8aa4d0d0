//! The way out of memory that is too small: a button that searches for setups that fit, and the place where they appear.

use leptos::prelude::*;
use vramscope_engine::verdict::Verdict;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::simulation::Simulation;

/// Offers the search where a setup does not fit, and shows it where it was asked for. What was found stays when one of
/// it is applied and fits.
#[component]
pub fn MakeFitPlace() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let is_open = RwSignal::new(false);
    let is_short = Memo::new(move |_| {
        let card = simulation.card().and_then(Result::ok);
        card.is_some_and(|card| card.fit.verdict == Verdict::Oom)
    });
    provide_context(MakeFitOpen(is_open));
    view! {
        <Show when=move || is_short.get() && !is_open.get()>
            <p class="make-fit-offer">
                <button type="button" class="primary" data-testid="make-fit" on:click=move |_| is_open.set(true)>
                    {t!(i18n, make_fit.go)}
                </button>
                <span class="muted small">{t!(i18n, make_fit.explain)}</span>
            </p>
        </Show>
        <Show when=move || is_open.get()>
            <LazyPart of=Lazy::MakeFit />
        </Show>
    }
}

/// True while the search and what it found are shown.
#[derive(Debug, Clone, Copy)]
pub struct MakeFitOpen(pub RwSignal<bool>);
