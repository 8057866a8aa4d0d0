use leptos::prelude::*;

use super::breakdown::Breakdown;
use super::memory_bar::MemoryBar;
use super::numbers::Numbers;
use super::phases::Phases;
use super::timeline::TimelinePanel;
use super::verdict::VerdictLine;
use super::warnings::Warnings;
use super::what_if::WhatIf;
use crate::i18n::{t, t_string, use_i18n};
use crate::simulation::{Outcome, Simulation};

/// What came of the entries: a run, or why there is none.
#[component]
pub fn Results() -> impl IntoView {
    let i18n = use_i18n();
    let Simulation { outcome, stale, .. } = Simulation::get();
    let is_run = Memo::new(move |_| outcome.with(|o| matches!(o, Outcome::Ready(_))));
    view! {
        <main
            class="results"
            id="results"
            tabindex="-1"
            aria-label=move || t_string!(i18n, plan.results)
            aria-busy=move || stale.get().to_string()
        >
            <Show when=move || is_run.get() fallback=Refusal>
                <section class="card headline">
                    <VerdictLine />
                    <MemoryBar />
                </section>
                <div class="row">
                    <section class="card">
                        <h2>{t!(i18n, plan.phases)}</h2>
                        <Phases />
                    </section>
                    <section class="card">
                        <h2>{t!(i18n, plan.numbers)}</h2>
                        <Numbers />
                    </section>
                </div>
                <Warnings />
                <section class="card">
                    <h2>{t!(i18n, what_if.title)}</h2>
                    <WhatIf />
                </section>
                <section class="card">
                    <h2>{t!(i18n, plan.timeline)}</h2>
                    <TimelinePanel />
                </section>
                <section class="card">
                    <h2>{t!(i18n, plan.breakdown)}</h2>
                    <Breakdown />
                </section>
            </Show>
        </main>
    }
}

/// The engine's message, and that nothing entered is lost.
#[component]
pub fn Refusal() -> impl IntoView {
    let i18n = use_i18n();
    let outcome = Simulation::get().outcome;
    let words = move || match outcome.get() {
        Outcome::BadModel(message) => Some((t_string!(i18n, refusal.model).to_string(), message)),
        Outcome::BadSetup(message) => Some((t_string!(i18n, refusal.setup).to_string(), message)),
        Outcome::Waiting | Outcome::Ready(_) => None,
    };
    move || {
        words().map(|(title, message)| {
            view! {
                <section class="card refusal" role="alert" data-testid="refusal">
                    <h2>{title}</h2>
                    <p class="refusal-message">{message}</p>
                    <p class="muted">{t!(i18n, refusal.kept)}</p>
                </section>
            }
        })
    }
}
